// What a probe from a node can find on the way to an endpoint, and which reason that is: of the API it polls, and of the
// terminal listener it dials. A total table, so that a new code has a reason.

import { isReason, type ReasonCode } from "../reasons/catalogue.ts";
import { nodeReason } from "../reasons/node.ts";

type Reasons = { api: ReasonCode; terminal: ReasonCode };

const api = (code: ReasonCode, terminal: ReasonCode): Reasons => ({ api: code, terminal });
const unreachable = api("api_unreachable", "terminal_node_stream_timeout");
const noServer = api("control_plane_unreachable", "terminal_node_stream_timeout");
const wrongEdge = api("edge_terminates_tls", "terminal_env_profile_drift");
const wrongProfile = api("endpoint_profile_drift", "terminal_env_profile_drift");

export const probeCodes = {
  endpoint_invalid: wrongProfile,
  dns_failed: api("api_name_unresolved", "terminal_node_stream_timeout"),
  dns_timeout: api("api_name_unresolved", "terminal_node_stream_timeout"),
  address_refused: wrongProfile,
  tcp_refused: unreachable,
  tcp_timeout: unreachable,
  tcp_unreachable: unreachable,
  tcp_failed: unreachable,
  tls_untrusted: api("server_tls_untrusted", "terminal_node_stream_mtls_failed"),
  tls_timeout: noServer,
  tls_failed: noServer,
  trust_bundle_missing: api("trust_bundle_invalid", "terminal_node_stream_mtls_failed"),
  mtls_refused: api("auth_failed", "terminal_node_stream_mtls_failed"),
  mtls_failed: noServer,
  mtls_timeout: noServer,
  identity_missing: api("identity_key_missing", "terminal_node_stream_mtls_failed"),
  /** Something on the way ends TLS, so that the node's certificate goes no further. */
  edge_ends_tls: wrongEdge,
  /** An identity-aware proxy asks a person to sign in: this is an address for browsers. */
  login_page: wrongEdge,
  rate_limited: api("edge_rate_limited", "edge_rate_limited"),
  /** Another listener of the installation, which does not serve this. */
  wrong_listener: wrongProfile,
  /** Accepted, and closed before the response was due. */
  idle_cut: unreachable,
  wait_failed: noServer,
  wait_timeout: noServer,
} as const satisfies Record<string, Reasons>;

export type ProbeCode = keyof typeof probeCodes;
export const probeCodeNames = Object.keys(probeCodes) as [ProbeCode, ...ProbeCode[]];

/** A server that refuses a certificate may name the exact reason itself. */
export function reasonOfProbe(
  code: ProbeCode,
  endpoint: "api" | "terminal",
  serverCode: string | null = null,
): ReasonCode {
  const exact = code === "mtls_refused" && endpoint === "api" && serverCode !== null;
  return exact && isReason(serverCode) && isRejectionReason(serverCode) ? serverCode : probeCodes[code][endpoint];
}

const isRejectionReason = (code: string) => nodeReason(code)?.class === "rejection";
