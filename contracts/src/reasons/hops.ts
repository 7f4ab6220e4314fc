// Where a chain can break: between a node's agent and the server, and between a browser and a shell. The names of the
// hops are those of the preflight runbook.

export const hops = [
  "node_heartbeat",
  "node_recovery_status",
  "node_readiness",
  "node_runtime_api_reachability",
  "latest_operation",
  "node_terminal_reachability",
  "workload_terminal_startup_failure",
] as const;
export type Hop = (typeof hops)[number];

/** What exactly is broken at a hop: from the host outwards, then the work itself. */
const hopByDetail = {
  agent_process: "node_recovery_status",
  host_disk: "node_readiness",
  host_clock: "node_readiness",
  profile: "node_runtime_api_reachability",
  dns: "node_runtime_api_reachability",
  tcp: "node_runtime_api_reachability",
  tls: "node_runtime_api_reachability",
  edge: "node_runtime_api_reachability",
  api: "node_runtime_api_reachability",
  identity: "node_recovery_status",
  standing: "node_recovery_status",
  heartbeat: "node_heartbeat",
  task_claim: "latest_operation",
  task_result: "latest_operation",
  terminal_stream: "node_terminal_reachability",
  terminal_pty: "workload_terminal_startup_failure",
} as const satisfies Record<string, Hop>;
export type HopDetail = keyof typeof hopByDetail;
export const hopDetails = Object.keys(hopByDetail) as [HopDetail, ...HopDetail[]];

/** Both names of a place, as API, page and command line present them. */
export type Place = { hop: Hop; hop_detail: HopDetail } | { hop: null; hop_detail: null };

export function placeOf(detail: HopDetail | null): Place {
  return detail === null ? { hop: null, hop_detail: null } : { hop: hopByDetail[detail], hop_detail: detail };
}

/** To a person: `node_runtime_api_reachability (dns)`. */
export function placeText({ hop, hop_detail }: { hop: string | null; hop_detail: string | null }): string | null {
  return hop === null ? null : hop_detail === null ? hop : `${hop} (${hop_detail})`;
}

/** On the way from a browser to a shell, in its order, each with words for the person who waits. */
export const terminalHopWords = {
  terminal_token_mint: "requesting permission",
  terminal_public_route: "between your browser and the gateway",
  browser_terminal_ws: "at the terminal gateway",
  node_heartbeat: "the node's connection to Holdfast",
  terminal_open_task: "sending the task to the node",
  node_terminal_reachability: "between the node and the gateway",
  gateway_node_stream: "the node's stream to the gateway",
  workload_terminal_startup_failure: "starting the shell on the node",
  terminal_ready_frame: "waiting for the terminal",
} as const;
export type TerminalHop = keyof typeof terminalHopWords;
export const terminalHops = Object.keys(terminalHopWords) as TerminalHop[];
