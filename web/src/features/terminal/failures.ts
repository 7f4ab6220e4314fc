// A failure as the page shows it: what failed and where, whose it is, what to do, and which button helps.

import { CallError } from "@holdfast/contracts/client";
import {
  isTerminalFailure,
  type TerminalFailureCode,
  type TerminalFailureEntry,
  type TerminalHop,
  terminalFailures,
} from "@holdfast/contracts/terminal-failures";
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

/** Where on the way from the browser to the shell. */
const hopWords: Record<TerminalHop, string> = {
  terminal_token_mint: "asking for permission",
  terminal_public_route: "between your browser and the gateway",
  browser_terminal_ws: "at the terminal gateway",
  node_heartbeat: "the node's connection to Holdfast",
  terminal_open_task: "handing the task to the node",
  node_terminal_reachability: "between the node and the gateway",
  gateway_node_stream: "the node's stream to the gateway",
  workload_terminal_startup_failure: "starting the shell on the node",
  terminal_ready_frame: "waiting for the terminal",
};

const ownerWords: Record<TerminalFailureEntry["owner"], string> = {
  tenant: "you, or an administrator of your organization",
  operator: "the operator of this installation",
  network: "whoever runs the network between node and gateway",
  node: "whoever runs the node",
  "control plane": "the operator of this installation",
};

export const hopInWords = (hop: string) => hopWords[hop as TerminalHop] ?? hop.replaceAll("_", " ");
export const ownerInWords = (owner: string) => ownerWords[owner as TerminalFailureEntry["owner"]] ?? owner;

/**
 * What a button can do about it. `same`: the shell that was there, if there was one. `later`: a new one, once
 * somebody has changed what stands in the way.
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

/** What only this page can notice. */
export function noticed(
  code: "terminal_public_route_missing" | "terminal_gateway_upgrade_failed" | "terminal_ui_connecting_stuck",
  rest: Pick<Failure, "why" | "correlationId">,
): Failure {
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
