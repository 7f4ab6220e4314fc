// A verdict as it is stored: each cause with the few observations that it rests on, so that lists need nothing else.

import type { Cause } from "../classify/classify.ts";
import type { Observation } from "../evidence/observation.ts";
import type { Seen } from "./message.ts";

export type StoredCause = Omit<Cause, "evidence" | "since"> & {
  since: string;
  /** Ids. */
  evidence: readonly string[];
  /** Absent in what an older version stored. */
  observed?: readonly Seen[];
  /** Of what was observed: leads to the audit and the logs. */
  correlationId?: string | undefined;
};

/** `all`: everything that is known of the node. */
export function storedCause({ evidence, since, ...cause }: Cause, all: readonly Observation[]): StoredCause {
  return {
    ...cause,
    since: new Date(since).toISOString(),
    evidence: evidence.map(({ id }) => id),
    observed: evidence.map(({ kind, value, observedAt, detail }) => ({ kind, value, observedAt, detail })),
    correlationId: correlationOf(cause, evidence, all),
  };
}

/** What the control plane measures has no id of its own; the agent's record of the same has. */
function correlationOf(
  { spokenAs }: Pick<Cause, "spokenAs">,
  evidence: readonly Observation[],
  all: readonly Observation[],
): string | undefined {
  const same = all.filter(({ kind, key, value }) => kind === "finding" && key === spokenAs && value === "present");
  return [...evidence, ...same].find(({ correlationId }) => correlationId !== undefined)?.correlationId;
}

/** What is measured anew with every heartbeat began when it was first seen. */
export function sinceFirstSeen(causes: readonly StoredCause[], before: readonly StoredCause[]): StoredCause[] {
  return causes.map((cause) => {
    const since = before.find(({ reason }) => reason === cause.reason)?.since ?? cause.since;
    return since < cause.since ? { ...cause, since } : cause;
  });
}

/** Whether two verdicts say the same. When it began and which evidence it rests on may be refined meanwhile. */
export function saysTheSame(a: readonly StoredCause[], b: readonly StoredCause[]): boolean {
  return textOf(a) === textOf(b);
}

const textOf = (causes: readonly StoredCause[]) =>
  JSON.stringify(
    causes.map(({ reason, signal, confidence, severity, userState, owner, nextAction, symptoms }) => [
      ...[reason, signal, confidence, severity, userState, owner, nextAction],
      ...symptoms,
    ]),
  );
