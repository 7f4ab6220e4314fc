// A failure as a client shows it: what failed and where, who can repair it, what to do, and whether the client itself can
// do something about it.

import { CallError } from "@holdfast/contracts/client";
import {
  clientFailureCodes,
  isTerminalFailure,
  type TerminalFailureCode,
  terminalFailures,
} from "@holdfast/contracts/terminal-failures";
import type { TerminalError } from "@holdfast/contracts/terminal-frames";

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

/** What only a client can notice. */
export type ClientFailureCode = (typeof clientFailureCodes)[number];

/**
 * What a client can do about it. `same`: try again for the shell that was there, if there was one. `later`: a new one, once
 * somebody has removed the obstacle.
 */
export type Remedy = "same" | "later" | "take_back" | "new" | "none";

const remedies: Record<TerminalFailureCode, Remedy> = {
  terminal_token_mint_failed: "later",
  terminal_public_route_missing: "same",
  terminal_gateway_upgrade_failed: "same",
  terminal_token_refused: "same",
  terminal_token_unverified: "same",
  terminal_frame_too_large: "same",
  terminal_sessions_exhausted: "same",
  terminal_node_full: "same",
  terminal_gateway_draining: "same",
  terminal_node_offline: "same",
  terminal_open_not_taken: "same",
  terminal_open_unconfirmed: "same",
  terminal_node_stream_timeout: "same",
  terminal_open_without_stream: "same",
  terminal_node_stream_mtls_failed: "same",
  terminal_env_profile_drift: "same",
  terminal_pty_failed: "same",
  terminal_ui_connecting_stuck: "same",
  terminal_stream_lost: "same",
  terminal_node_frame_too_large: "same",
  terminal_node_revoked: "later",
  terminal_node_quarantined: "later",
  terminal_node_retired: "none",
  terminal_session_unknown: "new",
  terminal_taken_over: "take_back",
  terminal_idle: "new",
  terminal_time_over: "new",
  terminal_closed: "new",
  terminal_allocation_released: "none",
  terminal_signed_out: "none",
  terminal_api_token_ended: "none",
  terminal_access_ended: "none",
  terminal_input_overflow: "same",
};

export function remedyOf({ code, retryable }: Pick<Failure, "code" | "retryable">): Remedy {
  if (isTerminalFailure(code)) return remedies[code];
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
