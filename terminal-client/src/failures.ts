// A failure as a client shows it: what failed and where, who can repair it, what to do, and whether the client itself can
// do something about it.

import { CallError } from "@holdfast/contracts/client";
import {
  type ClientFailureCode,
  clientFailureCodes,
  isTerminalFailure,
  remedyFor,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import type { Remedy } from "@holdfast/contracts/reasons/vocabulary";
import type { TerminalError } from "@holdfast/contracts/terminal/frames";

export type Failure = {
  code: string;
  hop: string;
  owner: string;
  message: string;
  action: string;
  retryable: boolean;
  /** What the catalogue cannot know, as the one who refused put it. */
  why?: string;
  correlationId?: string;
  /** What the request for a token rejected with. */
  cause?: unknown;
};

const MOST_DETAIL_CHARACTERS = 400;

export function remedyOf({ code, retryable }: Pick<Failure, "code" | "retryable">): Remedy {
  if (isTerminalFailure(code)) return remedyFor(code);
  if (code === "forbidden") return "later";
  return retryable ? "same" : "none";
}

export function noticedFailure(code: ClientFailureCode, rest: Pick<Failure, "why" | "correlationId">): Failure {
  return { code, ...terminalFailures[code], ...rest };
}

/** What the api is sent about it; undefined: it knows already. */
export function reportOf({ code, why }: Failure): { code: ClientFailureCode; detail?: string } | undefined {
  const known = clientFailureCodes.find((each) => each === code);
  return known && { code: known, ...(why ? { detail: why.slice(0, MOST_DETAIL_CHARACTERS) } : {}) };
}

/** The catalogue's sentence is the heading; a frame that says more says why. */
export function failureOfFrame(frame: TerminalError): Failure {
  const { code, hop, owner, action, retryable, correlation_id } = frame;
  const message = isTerminalFailure(code) ? terminalFailures[code].message : frame.message;
  const why = frame.message === message ? {} : { why: frame.message };
  return { code, hop, owner, message, action, retryable, ...why, correlationId: correlation_id };
}

/** An error that is no answer of the api, in the words of the environment. */
export type Described = Pick<Failure, "message" | "action" | "retryable">;

/** No token was granted. `describe` is asked about anything that is not an answer of the api. */
export function failureOfRefusal(cause: unknown, describe: (error: unknown) => Described): Failure {
  const { hop, owner } = terminalFailures.terminal_token_mint_failed;
  if (!(cause instanceof CallError))
    return { code: "unreachable", hop, owner: "operator", ...describe(cause), cause };
  const { code, message: why, next_step: action, correlation_id: correlationId, details } = cause.envelope;
  // The api speaks to programs; what a person does about an ended shell is in the catalogue.
  if (code === "terminal_session_unknown") return { code, ...terminalFailures[code], correlationId, cause };
  if (isTerminalFailure(code)) {
    const entry = terminalFailures[code];
    const named = typeof details["owner"] === "string" ? details["owner"] : entry.owner;
    return { code, ...entry, owner: named, action, why, correlationId, cause };
  }
  const { retryable } = cause.envelope;
  return {
    code,
    hop,
    owner: retryable ? "operator" : owner,
    message: why,
    action,
    retryable,
    correlationId,
    cause,
  };
}
