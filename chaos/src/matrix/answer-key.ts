// The failure matrix of the specification, and whether an explanation is what a row of it expects. Pure.

import { readFileSync } from "node:fs";
import type { Cause, Explanation } from "@holdfast/contracts/endpoints/drift";

export type KeyRow = {
  row: string;
  scenario: string;
  reason: string | null;
  signal: string | null;
  user_state: string;
  severity: string;
  owner: string;
  next_action: string;
  /** The condition under which it is another one, which the text names. */
  next_action_if?: string;
  detect_within_s: number;
  masks: string[];
  must_not_say: string[];
  /** Reasons the row may yield instead, each then answered as the row it belongs to. */
  reason_any_of?: string[];
  confidence?: string;
  injectable_only: boolean;
};

const file = new URL("../../../contracts/test/failure-matrix.json", import.meta.url);

export function readAnswerKey(): KeyRow[] {
  return (JSON.parse(readFileSync(file, "utf8")) as { rows: KeyRow[] }).rows;
}

/** The key for a fault that meets the condition of `next_action_if`. */
export function withAction(key: KeyRow, nextAction: string | undefined): KeyRow {
  if (nextAction === undefined) return key;
  if (!key.next_action_if?.includes(nextAction)) throw new Error(`${key.row} does not permit ${nextAction}`);
  return { ...key, next_action: nextAction };
}

/** A row may yield the reason of another row; it is then answered as that one, within its own time. */
export function keyFor(key: KeyRow, reason: string | undefined, all: readonly KeyRow[]): KeyRow {
  if (reason === undefined || reason === key.reason || !key.reason_any_of?.includes(reason)) return key;
  const other = all.find((one) => one.reason === reason);
  return { ...(other ?? { ...key, reason }), must_not_say: key.must_not_say };
}

/** What the product says, in the words of the matrix. */
export type Answer = {
  reason: string | null;
  signal: string | null;
  user_state: string;
  severity: string | null;
  owner: string | null;
  next_action: string | null;
};

export function answerOf({ causes: [first], user_state }: Pick<Explanation, "causes" | "user_state">): Answer {
  if (!first) return { reason: null, signal: null, user_state, severity: null, owner: null, next_action: "none" };
  const { reason, signal, severity, owner_id, next_action } = first;
  return { reason, signal, user_state: first.user_state, severity, owner: owner_id, next_action };
}

/** Every difference from the row's answer, or from that of a row it may be answered as; and what must not be said. */
export function problemsWith(key: KeyRow, all: readonly KeyRow[]) {
  return (explanation: Explanation, said: ReadonlySet<string>): string[] => [
    ...differences(keyFor(key, explanation.causes[0]?.reason, all), explanation),
    ...forbiddenIn(key, said),
  ];
}

/** Every difference; none: the row's answer was given. */
export function differences(key: KeyRow, explanation: Explanation): string[] {
  const { causes } = explanation;
  const answer = answerOf(explanation);
  if (key.reason === null) {
    const named = causes.map(({ reason }) => `${reason} is given as a cause; nothing is wrong`);
    return [...named, ...differs("user_state", answer.user_state, key.user_state)];
  }
  const [first, ...others] = causes;
  if (!first) return ["no cause is given"];
  return [
    ...(["reason", "user_state", "severity", "owner", "next_action"] as const).flatMap((field) =>
      differs(field, answer[field], key[field]),
    ),
    // Without a signal of its own, the reason may be published in its place.
    ...(key.signal === null && answer.signal === key.reason ? [] : differs("signal", answer.signal, key.signal)),
    ...differs("confidence", first.confidence, key.confidence ?? first.confidence),
    ...differs("detection budget", first.budget.detect_seconds, key.detect_within_s),
    ...others.map((one) => `${one.reason} is given as a further cause`),
    ...incidentProblems(explanation, first),
  ];
}

/** The worker has noticed it, too: an incident is open and names the same cause. */
function incidentProblems({ incident, history }: Explanation, first: Cause): string[] {
  const open = history.find(({ incident_id }) => incident_id === incident?.id);
  return open ? differs("the incident's reason", open.reason, first.reason) : ["no incident is open"];
}

/** Codes that were named as a cause although the row forbids it. */
export function forbiddenIn({ must_not_say }: KeyRow, said: ReadonlySet<string>): string[] {
  return must_not_say.filter((code) => said.has(code)).map((code) => `${code} was given as a cause`);
}

export function codesIn({ causes }: Pick<Explanation, "causes">): string[] {
  return causes.flatMap(({ reason, signal }) => (signal === null ? [reason] : [reason, signal]));
}

function differs(field: string, is: unknown, wanted: unknown): string[] {
  return is === wanted ? [] : [`${field} is ${is}; expected ${wanted}`];
}
