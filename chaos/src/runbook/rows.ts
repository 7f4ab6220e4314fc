// The terminal preflight runbook's list of faults: the 11 rows of its matrix (M1 … M11) and the 15 lines of its lists (L1 … L15), in its
// words. A test compares them with the document.

export type MatrixRow = {
  row: string;
  scenario: string;
  hops: readonly string[];
  signals: readonly string[];
  /** Cell "Evidence to capture", part by part. */
  evidence: readonly string[];
  /** Of the cell "Recovery proof": what is proved. */
  proof: readonly string[];
};
export type ListLine = { row: string; scenario: string };

export const matrixRows: readonly MatrixRow[] = [
  {
    ...{ row: "M1", scenario: "Node-agent service stopped" },
    ...{ hops: ["node_heartbeat", "node_recovery_status"], signals: ["node_agent_heartbeat_stale"] },
    evidence: ["Node read model heartbeat summary", "journald service state", "allocation/node IDs"],
    proof: ["heartbeat becomes current", "task poll resumes"],
  },
  {
    ...{ row: "M2", scenario: "Node-facing API unreachable" },
    ...{ hops: ["node_runtime_api_reachability"], signals: ["node_agent_api_unreachable"] },
    evidence: ["Helper SSH probe detail", "node-agent poll errors", "endpoint profile"],
    proof: ["`/internal/v1/nodes/{node_id}/tasks/wait` probe succeeds"],
  },
  {
    ...{ row: "M3", scenario: "Node API mTLS/auth rejected" },
    ...{ hops: ["node_recovery_status"], signals: ["node_agent_auth_failed"] },
    evidence: ["API auth response", "node-agent auth logs", "cert serial/SAN", "profile URL"],
    proof: ["node recovery status returns healthy"],
  },
  {
    ...{ row: "M4", scenario: "Node disk pressure blocks recovery" },
    hops: ["node_recovery_status", "node_readiness"],
    signals: ["disk_full", "node_observability_disk_pressure"],
    evidence: [
      "`df -h /`",
      "diagnostic write result",
      "journald/log-buffer usage",
      "node-agent local diagnostic evidence",
    ],
    proof: ["node-agent renews or enrolls", "heartbeat returns without database repair"],
  },
  {
    ...{ row: "M5", scenario: "Task result post blocked" },
    ...{ hops: ["node_recovery_status", "latest operation"], signals: ["node_task_result_post_failed"] },
    evidence: ["Latest operation ID/status", "node-agent result post error", "correlation ID"],
    proof: ["queued result posts complete or retry cleanly"],
  },
  {
    ...{ row: "M6", scenario: "Browser terminal route missing" },
    ...{ hops: ["terminal_public_route"], signals: ["terminal_public_route_missing"] },
    evidence: ["HTTP status from terminal `/healthz`", "edge route config", "browser close/error"],
    proof: ["helper sees terminal `/healthz` 200", "authenticated Pomerium WebSocket smoke succeeds"],
  },
  {
    ...{ row: "M7", scenario: "Browser gateway upgrade rejected" },
    ...{ hops: ["browser_terminal_ws"] },
    signals: ["terminal_gateway_upgrade_failed", "terminal_open_without_stream"],
    evidence: ["Gateway close code/reason", "Redis/session binding", "token mint correlation ID"],
    proof: ["smoke receives ready or structured terminal error"],
  },
  {
    ...{ row: "M8", scenario: "Node terminal stream blocked" },
    ...{ hops: ["node_terminal_reachability"], signals: ["terminal_node_stream_timeout"] },
    evidence: ["Helper node-side terminal probe", "gateway `node_stream_timeout`", "node endpoint URL"],
    proof: ["gateway logs internal node WebSocket for same session"],
  },
  {
    ...{ row: "M9", scenario: "Node terminal mTLS rejected" },
    hops: ["workload_terminal_startup_failure", "gateway logs"],
    signals: ["terminal_node_stream_mtls_failed"],
    evidence: ["Gateway TLS/client-cert error", "cert serial/SAN", "correlation ID"],
    proof: ["internal stream connects"],
  },
  {
    ...{ row: "M10", scenario: "Allocation OS user missing" },
    ...{ hops: ["workload_terminal_startup_failure"], signals: ["terminal_pty_failed"] },
    evidence: ["Node-agent PTY/user error", "allocation ID", "user setup task evidence"],
    proof: ["terminal reaches PTY"],
  },
  {
    ...{ row: "M11", scenario: "PTY readiness delayed" },
    hops: ["workload_terminal_startup_failure", "browser_terminal_ws"],
    signals: ["terminal_node_stream_timeout", "terminal_pty_failed"],
    evidence: ["Gateway timeout/error frame", "node-agent PTY timing logs", "browser-visible message"],
    proof: ["user receives ready frame within timeout"],
  },
];

export const listLines: readonly ListLine[] = [
  { row: "L1", scenario: "block node egress to API host" },
  { row: "L2", scenario: "break node API DNS" },
  { row: "L3", scenario: "replace API trust bundle with stale CA" },
  { row: "L4", scenario: "stop node-agent service" },
  { row: "L5", scenario: "run incompatible node-agent binary" },
  { row: "L6", scenario: "make result-post endpoint unreachable after task claim" },
  { row: "L7", scenario: "rotate node cert while node-agent is running" },
  { row: "L8", scenario: "remove browser-facing terminal route" },
  { row: "L9", scenario: "make Redis/session binding unavailable" },
  { row: "L10", scenario: "block node egress to node-facing terminal endpoint" },
  { row: "L11", scenario: "point `GPUAAS_TERMINAL_API_URL` at the wrong host or port" },
  { row: "L12", scenario: "make gateway reject node client cert" },
  { row: "L13", scenario: "remove allocation OS user before terminal open" },
  { row: "L14", scenario: "force PTY shell failure" },
  { row: "L15", scenario: "delay node stream beyond timeout and verify UI receives structured failure" },
];

/** What a drill of these rows has to capture, by name. */
export function cellsOf(rows: readonly string[]): string[] {
  return matrixRows
    .filter(({ row }) => rows.includes(row))
    .flatMap(({ row, evidence, proof }) => [...evidence, ...proof].map((name) => `${row}: ${name}`));
}
