// A failure as the page shows it: what failed and where, whose it is, what to do, and which button helps.

import { CallError } from "@holdfast/contracts/client";
import { type TerminalHop, terminalHopWords } from "@holdfast/contracts/reasons/hops";
import { type TerminalOwner, terminalOwnerWords } from "@holdfast/contracts/reasons/owners";
import {
  type ClientFailureCode,
  isTerminalFailure,
  remedyFor,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import type { Remedy } from "@holdfast/contracts/reasons/vocabulary";
import type { TerminalError } from "@holdfast/contracts/terminal-frames";
import { problemOf } from "../../problem.ts";

export type Failure = {
  code: string;
  hop: string;
  owner: string;
  message: string;
  action: string;
  retryable: boolean;
  /** What the catalogue cannot know: in the words of whoever refused. */
  why?: string;
  correlationId?: string;
};

export const hopInWords = (hop: string) => terminalHopWords[hop as TerminalHop] ?? hop.replaceAll("_", " ");
export const ownerInWords = (owner: string) => terminalOwnerWords[owner as TerminalOwner] ?? owner;

export function remedyOf({ code, retryable }: Pick<Failure, "code" | "retryable">): Remedy {
  if (isTerminalFailure(code)) return remedyFor(code);
  if (code === "forbidden") return "later";
  return retryable ? "same" : "none";
}

/** What only this page can notice. */
export function noticed(code: ClientFailureCode, rest: Pick<Failure, "why" | "correlationId">): Failure {
  return { code, ...terminalFailures[code], ...rest };
}

/** The catalogue's sentence is the heading; a frame that says more says why. */
export function ofFrame(frame: TerminalError): Failure {
  const { code, hop, owner, action, retryable, correlation_id } = frame;
  const message = isTerminalFailure(code) ? terminalFailures[code].message : frame.message;
  const why = frame.message === message ? {} : { why: frame.message };
  return { code, hop, owner, message, action, retryable, ...why, correlationId: correlation_id };
}

/** The api gave no token. */
export function ofRefusal(error: unknown): Failure {
  const { code, message: why, nextStep: action, correlationId } = problemOf(error);
  const quoted = correlationId ? { correlationId } : {};
  const details = error instanceof CallError ? error.envelope.details : {};
  // The api speaks to programs; what a person does about an ended shell is the catalogue's to say.
  if (code === "terminal_session_unknown") return { code, ...terminalFailures[code], ...quoted };
  if (code && isTerminalFailure(code)) {
    const entry = terminalFailures[code];
    const owner = typeof details["owner"] === "string" ? details["owner"] : entry.owner;
    return { code, ...entry, owner, action, why, ...quoted };
  }
  const { hop, owner } = terminalFailures.terminal_token_mint_failed;
  const refused = error instanceof CallError;
  const retryable = !refused || error.envelope.retryable;
  return {
    code: code ?? "unreachable",
    hop,
    owner: retryable ? "operator" : owner,
    message: why,
    action,
    retryable,
    ...quoted,
  };
}
