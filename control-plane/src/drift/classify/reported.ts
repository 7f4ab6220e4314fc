// What codes that others report mean as facts: the diagnostic records of agents, and the failures of terminals. A code
// without an entry is a cause by itself.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { Facts } from "./facts.ts";

const running: Facts = { agent_process: "running" };

/** Empty: the control plane knows better, or nothing is wrong. */
export const factsOfDiagnostic: Partial<Record<DiagnosticReason, Facts>> = {
  process_alive: running,
  agent_down: { host_service: "inactive" },
  agent_version_drift: { ...running, agent_build: "older_than_required" },
  clock_skew: { ...running, clock: "skewed" },
  disk_full: { root_filesystem: "full" },
  node_observability_disk_pressure: { root_filesystem: "pressure" },
  api_name_unresolved: { ...running, node_api_connect: "failed" },
  api_unreachable: { ...running, node_api_connect: "failed" },
  server_tls_untrusted: { ...running, node_api_connect: "succeeds", server_tls: "verify_failed" },
  edge_rate_limited: { ...running, task_wait: "rate_limited" },
  control_plane_unreachable: { ...running, task_wait: "network_failure", control_plane: "not_ready" },
  trust_bundle_invalid: { ...running, server_tls: "verify_failed" },
  auth_failed: { ...running, task_wait: "identity_rejected" },
  ingress_mtls_rejected: { ...running, task_wait: "ingress_mtls_rejected" },
  // Who terminates TLS in between is no node-facing endpoint, whatever its address.
  edge_terminates_tls: { ...running, task_wait: "identity_rejected", endpoint: "public_edge" },
  cert_expired: { ...running, local_cert: "expired" },
  identity_revoked: { ...running, task_wait: "denied" },
  identity_retired: { ...running, task_wait: "denied" },
  recovery_enrollment_blocked: { ...running, recovery_enrollment: "blocked_before_api" },
  // The server knows what it refused, and why.
  recovery_refused: running,
  node_quarantined: running,
  endpoint_profile_drift: { ...running, node_addresses: "differ_from_profile" },
  task_result_failed: { ...running, result_post: "failed" },
  // Why it was refused comes with the result.
  task_refused: running,
  terminal_gateway_unreachable: {
    ...running,
    gateway_node_stream: "absent",
    node_terminal_reachability: "failed",
  },
  terminal_failed: { ...running, gateway_node_stream: "connected", pty: "failed" },
};

const accepted: Facts = { terminal_token: "minted", browser_ws: "accepted" };

export const factsOfTerminal: Partial<Record<TerminalFailureCode, Facts>> = {
  terminal_token_mint_failed: { terminal_token: "refused" },
  terminal_public_route_missing: { terminal_token: "minted", terminal_health_route: "failed" },
  terminal_gateway_upgrade_failed: {
    ...{ terminal_token: "minted", terminal_health_route: "healthy" },
    browser_ws: "upgrade_refused",
  },
  terminal_binding_unavailable: {
    ...{ terminal_token: "minted", terminal_health_route: "healthy" },
    ...{ browser_ws: "cannot_complete", session_binding: "unavailable" },
  },
  terminal_node_stream_timeout: {
    ...accepted,
    ...{ terminal_open: "accepted", gateway_node_stream: "absent", node_terminal_reachability: "failed" },
  },
  terminal_open_without_stream: {
    ...accepted,
    ...{ terminal_open: "completed", gateway_node_stream: "absent", node_terminal_reachability: "not_failed" },
  },
  terminal_node_stream_mtls_failed: { ...accepted, gateway_node_stream: "mtls_rejected" },
  terminal_env_profile_drift: {
    ...accepted,
    ...{ terminal_address: "differs_from_profile", node_terminal_reachability: "failed" },
  },
  terminal_pty_failed: { ...accepted, gateway_node_stream: "connected", pty: "failed" },
  terminal_ui_connecting_stuck: { ...accepted, error_frame: "not_shown" },
};
