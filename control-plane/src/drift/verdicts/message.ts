// What a cause says: the catalogue's words with what was measured, and how long ago. From the evidence that it rests on
// alone, so that a stored verdict reads the same as one that was just made.

import type { RecoveryCheck } from "@holdfast/contracts/endpoints/drift";
import { type ErrorCode, errorCatalogue } from "@holdfast/contracts/errors";
import { isReason, reasons } from "@holdfast/contracts/reasons/catalogue";
import { unknownReason } from "@holdfast/contracts/reasons/node";
import { recoveryCheckTitles } from "@holdfast/contracts/words/state-titles";
import { duration } from "../duration.ts";
import type { Kind, Observation } from "../evidence/observation.ts";

export type Seen = Pick<Observation, "kind" | "value" | "observedAt" | "detail">;
type Spoken = {
  spokenAs: string;
  nextStep?: string | undefined;
  evidence: readonly Seen[];
  missing?: readonly RecoveryCheck[] | undefined;
};

export function messageOf({ spokenAs, evidence, missing }: Spoken, now: number): string {
  const exact = exactMessage(spokenAs, evidence, now);
  if (exact !== undefined) return exact;
  const general = isReason(spokenAs) ? reasons[spokenAs].message : unknownReason.message;
  const details = evidence.flatMap(({ detail }) => (typeof detail?.["text"] === "string" ? [detail["text"]] : []));
  const open = missing ? [`Not seen yet: ${missing.map((check) => recoveryCheckTitles[check]).join("; ")}.`] : [];
  return [general, ...new Set(details.filter((text) => text !== "")), ...open].join(" ");
}

export function nextStepOf({ spokenAs, nextStep }: Pick<Spoken, "spokenAs" | "nextStep">): string {
  if (nextStep !== undefined) return nextStep;
  return isReason(spokenAs) ? reasons[spokenAs].nextStep : unknownReason.nextStep;
}

/** Undefined: there is nothing to measure. */
function exactMessage(code: string, evidence: readonly Seen[], now: number): string | undefined {
  const of = (kind: Kind) => evidence.find((one) => one.kind === kind);
  const refusal = of("refusal");
  if (refusal && (code === "auth_failed" || code === "cert_expired")) return refusalMessage(refusal, now);
  const [kind, words] = measured[code] ?? [];
  const source = kind && of(kind);
  return source && words?.(source, now);
}

const measured: Readonly<Record<string, [Kind, (seen: Seen, now: number) => string]>> = {
  heartbeat_stale: ["heartbeat", (seen, now) => `The last heartbeat came ${ago(seen, now)}.`],
  connection_lost: ["connection", (seen, now) => `${endingOf(seen)} ${ago(seen, now)}.`],
  never_heard: [
    "standing",
    (seen, now) => `The node was enrolled ${ago(seen, now)} and has never sent a heartbeat.`,
  ],
  heartbeat_in_future: [
    "heartbeat",
    (seen, now) =>
      `The time of the last heartbeat is ${duration(seen.observedAt - now)} in the future: a clock of the control plane was wrong. Whether the node is online is unknown.`,
  ],
  cert_expired: [
    "certificate",
    (seen, now) => `The node's certificate expired ${duration(Math.max(0, now - endOf(seen)))} ago.`,
  ],
  cert_renewal_overdue: [
    "certificate",
    (seen, now) =>
      `The node's certificate should have been renewed by now. It expires in ${duration(Math.max(0, endOf(seen) - now))}.`,
  ],
  clock_skew: ["clock", (seen) => clockMessage(Number(seen.detail?.["skew_ms"]))],
};

const ago = ({ observedAt }: Seen, now: number) => `${duration(Math.max(0, now - observedAt))} ago`;
const endOf = ({ detail }: Seen) => Number(detail?.["not_after"]);

function clockMessage(skewMs: number): string {
  return `The node's clock is ${duration(Math.abs(skewMs))} ${skewMs > 0 ? "ahead of" : "behind"} the server's.`;
}

function refusalMessage(seen: Seen, now: number): string {
  const why = Object.hasOwn(errorCatalogue, seen.value)
    ? errorCatalogue[seen.value as ErrorCode].message
    : `${seen.value}.`;
  return `The server rejected this node's certificate ${ago(seen, now)}. ${why}`;
}

/** By how a connection ended; a time follows. */
const endings: Readonly<Record<string, string>> = {
  closed_by_agent: "The agent closed its connection",
  connection_lost: "The connection of the agent was lost",
  unresponsive: "The agent stopped responding, and its connection was closed",
  refused: "The server refused the agent's connection",
};

const endingOf = ({ detail }: Seen) => endings[String(detail?.["why"])] ?? "The connection of the agent was lost";
