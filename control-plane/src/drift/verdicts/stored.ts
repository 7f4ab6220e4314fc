// A verdict as it is stored: without the evidence itself, which stays where it is.

import type { Cause } from "../classify/classify.ts";

export type StoredCause = Omit<Cause, "evidence" | "since"> & { since: string; evidence: readonly string[] };

export function storedCause({ evidence, since, ...cause }: Cause): StoredCause {
  return { ...cause, since: new Date(since).toISOString(), evidence: evidence.map(({ id }) => id) };
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
