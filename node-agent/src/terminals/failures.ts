// What a failed attempt to reach the terminal gateway means, in the words of the failure matrix. Pure.

import { isRejection } from "@holdfast/contracts/reasons/node";
import { HostProblem } from "../identity/state-directory.ts";
import { classify, failureOf, LinkFailure } from "../link/failures.ts";

export type StreamFailureCode =
  | "terminal_node_stream_timeout"
  | "terminal_node_stream_mtls_failed"
  | "terminal_env_profile_drift"
  | "terminal_session_unknown";

export type StreamFailure = {
  code: StreamFailureCode;
  detail: string;
  /** Trying again at once may help: nobody has decided anything. */
  again: boolean;
};

export function streamFailure(error: unknown, url: string): StreamFailure {
  if (error instanceof HostProblem)
    return { code: "terminal_node_stream_mtls_failed", detail: error.message, again: false };
  const failure = failureOf(error);
  const { reason, detail } = classify(failure);
  const told = (code: StreamFailureCode, again: boolean): StreamFailure => ({
    code,
    detail: `${url}: ${detail}`,
    again,
  });
  if (failure.kind === "answer" && failure.code === "terminal_session_unknown")
    return told("terminal_session_unknown", false);
  if (failure.kind === "answer" && failure.code?.startsWith("certificate_"))
    return told("terminal_node_stream_mtls_failed", false);
  if (isRejection(reason)) return told("terminal_node_stream_mtls_failed", false);
  switch (reason) {
    case "clock_skew":
      return told("terminal_node_stream_mtls_failed", false);
    case "server_tls_untrusted":
    case "endpoint_profile_drift":
      return told("terminal_env_profile_drift", false);
    case "control_plane_unreachable": {
      // A page, or another protocol: not our gateway. One that is starting or ending says so itself.
      const ours = error instanceof LinkFailure && failure.kind === "answer" && failure.code !== undefined;
      return told(ours ? "terminal_node_stream_timeout" : "terminal_env_profile_drift", ours);
    }
    default:
      return told("terminal_node_stream_timeout", true);
  }
}
