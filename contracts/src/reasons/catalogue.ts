// The one catalogue of everything that can be wrong. An entry in one of its parts is all that a new reason needs, beside
// the code that raises it: API, page, command line, audit and the reference page read it from here.

import { appReasons } from "./app.ts";
import { cloneReasons } from "./node/clones.ts";
import { concludedReasons } from "./node/concluded.ts";
import { silenceReasons } from "./node/silence.ts";
import { diagnosticReasons, type NodeReasonCode } from "./node.ts";
import type { OwnerId } from "./owners.ts";
import { signalReasons } from "./signals.ts";
import { type TerminalFailureCode, terminalReasons } from "./terminal.ts";
import type { NextAction, NodeReason, ReasonFacts, Severity, TerminalReason } from "./vocabulary.ts";

type SignalCode = keyof typeof signalReasons;
type AppReasonCode = keyof typeof appReasons;
export type ReasonCode = NodeReasonCode | TerminalFailureCode | AppReasonCode | SignalCode;

/**
 * `diagnostic`: an agent records it. `attention`: the control plane notices it about a node. `terminal`: a terminal fails
 * or ends with it. `app`: an app on a node fails with it. `signal`: what alarms call one or more of them.
 */
export type Reason =
  | ({ kind: "diagnostic" | "attention" } & NodeReason)
  | ({ kind: "terminal" } & TerminalReason)
  | ({ kind: "app" | "signal" } & ReasonFacts);

function ofKind<Kind extends Reason["kind"], Code extends string, Entry>(
  kind: Kind,
  entries: Record<Code, Entry>,
) {
  return Object.fromEntries(
    Object.entries<Entry>(entries).map(([code, entry]) => [code, { kind, ...entry }]),
  ) as Record<Code, { kind: Kind } & Entry>;
}

export const reasons: Record<ReasonCode, Reason> = {
  ...ofKind("diagnostic", diagnosticReasons),
  ...ofKind("attention", { ...silenceReasons, ...cloneReasons, ...concludedReasons }),
  ...ofKind("terminal", terminalReasons),
  ...ofKind("app", appReasons),
  ...ofKind("signal", signalReasons),
};
export const reasonCodes = Object.keys(reasons) as ReasonCode[];

export function isReason(code: string): code is ReasonCode {
  return Object.hasOwn(reasons, code);
}

/** For a heading. A code that only a newer agent knows is shown in words: `moon_phase` is Moon phase. */
export function titleOf(code: string): string {
  if (isReason(code)) return reasons[code].title;
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Where the api serves runbooks: a page of `docs/runbooks` for every reason, and the general ones. */
export const RUNBOOKS_PATH = "/runbooks";

/** Pages that belong to no reason: to an error of the same name, or to what operators do. */
export const generalRunbooks: readonly string[] = [
  "ingress_identity_refused",
  "node-connectivity",
  "notifications",
  "operator-bundles",
  "rotate-kek",
  "rotate-task-signing-key",
];

export function hasRunbook(name: string): boolean {
  return isReason(name) || generalRunbooks.includes(name);
}

/** The path of its page on the server. Null: there is none, as for a code that only a newer agent knows. */
export function runbookOf(code: string): string | null {
  return hasRunbook(code) ? `${RUNBOOKS_PATH}/${code}` : null;
}

/** The facts that the API presents of every reason, in its own field names. */
export type PresentedReason = {
  title: string;
  severity: Severity | null;
  owner_id: OwnerId | null;
  next_action: NextAction | null;
  runbook: string | null;
};

/** A code that only a newer agent knows has a title and nothing else. */
export function presentReason(code: string): PresentedReason {
  const title = titleOf(code);
  const runbook = runbookOf(code);
  if (!isReason(code)) return { title, severity: null, owner_id: null, next_action: null, runbook };
  const { severity, owner, nextAction } = reasons[code];
  return { title, severity, owner_id: owner, next_action: nextAction, runbook };
}
