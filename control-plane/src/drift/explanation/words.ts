// What is said about a node in one or two sentences, to somebody who was just woken up.

import { isReason, reasons, titleOf } from "@holdfast/contracts/reasons/catalogue";
import { duration } from "../../nodes/presence/attention.ts";
import type { Cause } from "../classify/classify.ts";
import type { Observation } from "../evidence/observation.ts";

export type Spoken = { name: string; causes: readonly Cause[]; evidence: readonly Observation[]; now: number };

export function headlineOf({ name, causes, evidence, now }: Spoken): string {
  const [first, ...others] = causes;
  if (!first) return `${name} is healthy.`;
  const more =
    others.length === 0 ? "" : ` ${others.length === 1 ? "Another cause is" : "Other causes are"} listed below.`;
  return `${sentenceOf(first, { name, evidence, now })}${more}`;
}

function sentenceOf(cause: Cause, { name, evidence, now }: Omit<Spoken, "causes">): string {
  const { reason, signal } = cause;
  const heartbeat = evidence.find(({ kind }) => kind === "heartbeat");
  if (reason === "agent_down" && signal === "node_agent_heartbeat_stale" && heartbeat) {
    const closed = evidence.find(({ kind, value }) => kind === "connection" && value === "closed");
    const how = closed && closed.observedAt >= heartbeat.observedAt ? endingOf(closed) : "it stopped reporting";
    return `${name} is offline: ${how} ${duration(Math.max(0, now - (closed ?? heartbeat).observedAt))} ago. Nothing else is known.`;
  }
  if (reason === "node_agent_unreachable")
    return `${name} has never reported, and nothing else is known about it.`;
  const certainty = cause.confidence === "high" ? "" : ` (${cause.confidence} confidence)`;
  return `${name}: ${titleOf(cause.spokenAs)}${certainty}. ${messageOf(cause)}`;
}

/** The catalogue's, with what was measured or reported. */
export function messageOf({ spokenAs, evidence }: Pick<Cause, "spokenAs" | "evidence">): string {
  const general = isReason(spokenAs)
    ? reasons[spokenAs].message
    : "The agent reports a reason that this server does not know.";
  const details = evidence.flatMap(({ detail }) => (typeof detail?.["text"] === "string" ? [detail["text"]] : []));
  return [general, ...new Set(details.filter((text) => text !== ""))].join(" ");
}

export function nextStepOf({ spokenAs, nextStep }: Pick<Cause, "spokenAs" | "nextStep">): string {
  if (nextStep !== undefined) return nextStep;
  return isReason(spokenAs) ? reasons[spokenAs].nextStep : "Run `holdfast agent diagnose` on the host.";
}

const endings: Readonly<Record<string, string>> = {
  closed_by_agent: "its agent closed the connection",
  connection_lost: "its connection was lost",
  unresponsive: "its agent stopped responding",
  refused: "the server refused its connection",
};

function endingOf({ detail }: Observation): string {
  return endings[String(detail?.["why"])] ?? "its connection was lost";
}
