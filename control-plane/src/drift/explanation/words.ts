// What is said about a node in one or two sentences, to somebody who was just woken up.

import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { Cause } from "../classify/classify.ts";
import { duration } from "../duration.ts";
import type { Observation } from "../evidence/observation.ts";
import { messageOf } from "../verdicts/message.ts";

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
  return `${name}: ${titleOf(cause.spokenAs)}${certainty}. ${messageOf(cause, now)}`;
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
