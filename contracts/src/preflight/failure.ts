// What a failed check is called, whose it is and what to do: all of it from the catalogue of reasons.

import { adviceFor } from "../reasons/advice.ts";
import { type ReasonCode, reasons, runbookOf } from "../reasons/catalogue.ts";
import type { OwnerId } from "../reasons/owners.ts";
import type { NextAction, Severity } from "../reasons/vocabulary.ts";

export type PreflightFailure = {
  code: ReasonCode;
  title: string;
  message: string;
  /** What alarms call it. */
  signal: string;
  owner: OwnerId | null;
  severity: Severity | null;
  next_action: NextAction;
  /** With commands that can be pasted. */
  recovery: string;
  runbook: string | null;
};

/** `node`: its id, for the commands. */
export function describeFailure(code: ReasonCode, node: string | null): PreflightFailure {
  const reason = reasons[code];
  const { title, message, owner, severity, nextAction, nextStep } = reason;
  const signal = "signal" in reason ? (reason.signal ?? code) : code;
  return {
    ...{ code, title, message, signal, owner, severity, next_action: nextAction },
    recovery: node === null ? nextStep : adviceFor(node, nextStep),
    runbook: runbookOf(code),
  };
}
