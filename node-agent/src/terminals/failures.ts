// What a failed attempt to reach the terminal gateway means, as a reason of the failure matrix. Pure.

import { type DiagnosticReason, isRejection } from "@holdfast/contracts/reasons/node";
import { isOfNodeStream } from "@holdfast/contracts/reasons/terminal";
import { HostProblem } from "../identity/state-directory.ts";
import { classify, failureOf, LinkFailure } from "../link/failures.ts";

export type StreamFailureCode =
  | "terminal_node_stream_timeout"
  | "terminal_node_stream_mtls_failed"
  | "terminal_env_profile_drift"
  | "terminal_relay_unavailable"
  | "terminal_session_unknown";

export type StreamFailure = {
  code: StreamFailureCode;
  detail: string;
  /** An immediate retry may help: the gateway has not decided anything. */
  again: boolean;
};

export function streamFailure(error: unknown, url: string): StreamFailure {
  if (error instanceof HostProblem)
    return { code: "terminal_node_stream_mtls_failed", detail: error.message, again: false };
  const failure = failureOf(error);
  const { reason, detail } = classify(failure);
  const asFailure = (code: StreamFailureCode, again: boolean): StreamFailure => ({
    code,
    detail: `${url}: ${detail}`,
    again,
  });
  if (failure.kind === "answer" && failure.code === "terminal_session_unknown")
    return asFailure("terminal_session_unknown", false);
  // The gateway that it reached cannot pass the stream on; the next attempt may reach another one.
  if (failure.kind === "answer" && failure.code === "terminal_relay_unavailable")
    return asFailure("terminal_relay_unavailable", true);
  if (failure.kind === "answer" && failure.code?.startsWith("certificate_"))
    return asFailure("terminal_node_stream_mtls_failed", false);
  if (isRejection(reason)) return asFailure("terminal_node_stream_mtls_failed", false);
  switch (reason) {
    case "clock_skew":
    case "ingress_mtls_rejected":
      return asFailure("terminal_node_stream_mtls_failed", false);
    case "server_tls_untrusted":
    case "endpoint_profile_drift":
      return asFailure("terminal_env_profile_drift", false);
    case "control_plane_unreachable": {
      // A web page, or another protocol: not the gateway. A gateway that is starting or stopping says so itself.
      const ours = error instanceof LinkFailure && failure.kind === "answer" && failure.code !== undefined;
      return asFailure(ours ? "terminal_node_stream_timeout" : "terminal_env_profile_drift", ours);
    }
    default:
      return asFailure("terminal_node_stream_timeout", true);
  }
}

export function isStreamFailure(error: unknown): error is StreamFailure {
  return typeof error === "object" && error !== null && "again" in error && "code" in error;
}

/** The reason of a terminal's failure in the host's history. */
export function reasonOfTerminalFailure(code: string): DiagnosticReason {
  return isOfNodeStream(code) ? "terminal_gateway_unreachable" : "terminal_failed";
}
