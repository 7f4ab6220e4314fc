// What the events of a run say about each of its nodes: attempts, with their times, inputs and failures.

import type { RunEventEntry } from "@holdfast/contracts/endpoints/runs";

type Failure = { code: string; message: string };

export type Attempt = {
  attempt: number;
  startedAt: string;
  endedAt: string | null;
  input: unknown;
  failure: Failure | null;
  /** Of the request to an agent. */
  requestId: string | undefined;
  /** Until when it waits at most. */
  until: string | null;
  /** When the next attempt may start. */
  notBefore: string | null;
};

/** By node, in order. Events of a type that is not known here are left out. */
export function attemptsOf(events: readonly RunEventEntry[]): Map<string, Attempt[]> {
  const found = new Map<string, Attempt[]>();
  for (const { type, node, attempt, at, data } of events) {
    if (node === null) continue;
    const all = found.get(node) ?? [];
    found.set(node, all);
    if (type === "node_started") {
      all.push({
        ...{ attempt: attempt ?? 1, startedAt: at, endedAt: null, input: data["input"], failure: null },
        ...{ requestId: undefined, until: null, notBefore: null },
      });
      continue;
    }
    const current = all.at(-1);
    if (current) Object.assign(current, changesBy(type, at, data));
  }
  return found;
}

function changesBy(type: string, at: string, data: Record<string, unknown>): Partial<Attempt> {
  switch (type) {
    case "node_dispatched":
      return { requestId: String(data["requestId"]) };
    case "node_waiting":
      return { until: typeof data["until"] === "string" ? data["until"] : null };
    case "node_succeeded":
    case "node_skipped":
      return { endedAt: at };
    case "node_failed":
      return { endedAt: at, failure: data["failure"] as Failure };
    case "node_retried":
      return { endedAt: at, failure: data["failure"] as Failure, notBefore: String(data["notBefore"]) };
    default:
      return {};
  }
}

/** All attempts together: the time between them is not counted. */
export function tookMs(attempts: readonly Attempt[], now: number): number | undefined {
  if (attempts.length === 0) return undefined;
  const each = attempts.map(
    ({ startedAt, endedAt }) => (endedAt ? Date.parse(endedAt) : now) - Date.parse(startedAt),
  );
  return each.reduce((sum, ms) => sum + Math.max(0, ms), 0);
}
