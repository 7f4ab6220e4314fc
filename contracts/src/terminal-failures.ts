// Why a terminal does not come up, or ends: one entry for each row of the failure matrix and what else
// can happen on the way. The hop says where on the path from the browser to the shell; the owner, whose
// work the repair is. No schema library here: pages and agents read it too.

export type TerminalFailureEntry = {
  hop: TerminalHop;
  owner: "tenant" | "operator" | "network" | "node" | "control plane";
  /** What happened, to a person. */
  message: string;
  /** What to do now. */
  action: string;
  /** Trying again, unchanged, may work. */
  retryable: boolean;
};

export const terminalHops = [
  "terminal_token_mint",
  "terminal_public_route",
  "browser_terminal_ws",
  "node_heartbeat",
  "terminal_open_task",
  "node_terminal_reachability",
  "gateway_node_stream",
  "workload_terminal_startup_failure",
  "terminal_ready_frame",
] as const;
export type TerminalHop = (typeof terminalHops)[number];

export const terminalFailures = {
  terminal_token_mint_failed: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message: "The server gave no permission for a terminal.",
    action: "The reason says why; most often the allocation is not active, or your role does not include it.",
    retryable: false,
  },
  terminal_public_route_missing: {
    hop: "terminal_public_route",
    owner: "operator",
    message: "Your browser does not reach the terminal gateway at all.",
    action:
      "The operator checks the gateway's public address and the proxy in front of it: its /healthz must answer. Then try again.",
    retryable: true,
  },
  terminal_gateway_upgrade_failed: {
    hop: "browser_terminal_ws",
    owner: "operator",
    message: "The terminal gateway answers, but the connection could not be opened.",
    action:
      "Try again. If it stays, a proxy in between may not pass WebSockets on: the operator finds the refusal in the gateway's log by the correlation id.",
    retryable: true,
  },
  terminal_token_refused: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "The permission for this terminal was used before, or its time is over.",
    action: "Try again: a new one is asked for. It is good for one connection, within a minute.",
    retryable: true,
  },
  terminal_token_unverified: {
    hop: "browser_terminal_ws",
    owner: "control plane",
    message: "The terminal gateway could not check your permission: the Holdfast API did not answer it.",
    action:
      "Try again in a few seconds. If it stays, the operator checks that the api runs and that the gateway reaches it. Until then only the gateway's log has the correlation id; the audit trail gets it when the api is back.",
    retryable: true,
  },
  terminal_frame_too_large: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "Your client sent more than 1 MiB in one message, so the connection was closed. The shell goes on.",
    action: "Send input in messages of at most 1,048,576 bytes. Copy large data with scp or rsync instead.",
    retryable: false,
  },
  terminal_sessions_exhausted: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "You have reached your limit of open terminals. Detached ones count too.",
    action:
      "End one that you no longer need, on the page My terminals or by its id from `holdfast terminal list`. A detached one ends by itself after a while.",
    retryable: true,
  },
  terminal_node_full: {
    hop: "browser_terminal_ws",
    owner: "operator",
    message: "The node has reached its limit of open terminals. Detached ones count too.",
    action:
      "Try again later, or end a terminal of yours on this node. An administrator sees them all with `holdfast terminal list --all`; the operator can raise HOLDFAST_TERMINALS_PER_NODE.",
    retryable: true,
  },
  terminal_gateway_draining: {
    hop: "browser_terminal_ws",
    owner: "operator",
    message: "The terminal gateway is being restarted.",
    action: "Wait a few seconds and try again. A shell that was open goes on.",
    retryable: true,
  },
  terminal_node_offline: {
    hop: "node_heartbeat",
    owner: "node",
    message: "The node has not been heard of lately, so nothing can be opened on it.",
    action: "See on the node's page since when; on the host, `holdfast agent diagnose` says why.",
    retryable: true,
  },
  terminal_open_not_taken: {
    hop: "terminal_open_task",
    owner: "node",
    message: "The node did not take the task that opens the terminal.",
    action: "See on the node's page whether its agent takes work; then try again.",
    retryable: true,
  },
  terminal_open_unconfirmed: {
    hop: "terminal_open_task",
    owner: "control plane",
    message: "The Holdfast API did not answer in time, so it is not known whether the node was asked for a shell.",
    action:
      "Try again in a few seconds. If it stays, the operator checks that the api runs and that the gateway reaches it.",
    retryable: true,
  },
  terminal_node_stream_timeout: {
    hop: "node_terminal_reachability",
    owner: "network",
    message: "The node took the task, but its stream did not reach the terminal gateway in time.",
    action:
      "From the node, test the gateway's node-facing address (HOLDFAST_NODE_TERMINAL_URL at the gateway): DNS, route, firewall. `holdfast task run <node> diag.network_probe` does it from here.",
    retryable: true,
  },
  terminal_open_without_stream: {
    hop: "gateway_node_stream",
    owner: "node",
    message: "The agent says that the terminal is open, but no stream of it ever came.",
    action: "Update the agent on the node: one of this version says so only when stream and shell are up.",
    retryable: true,
  },
  terminal_node_stream_mtls_failed: {
    hop: "gateway_node_stream",
    owner: "control plane",
    message: "The node's stream reached the terminal gateway, which did not accept its certificate.",
    action: "See the node's page for the state of its certificate; re-enroll the node if it was revoked or lost.",
    retryable: true,
  },
  terminal_env_profile_drift: {
    hop: "node_terminal_reachability",
    owner: "operator",
    message: "The node looks for the terminal gateway at an address that is no longer the right one.",
    action:
      "The agent takes the present address with its next heartbeat; try again in a minute. If it stays, restart the agent.",
    retryable: true,
  },
  terminal_pty_failed: {
    hop: "workload_terminal_startup_failure",
    owner: "node",
    message: "The node could not start a shell for this user.",
    action:
      "Repair the allocation: that restores a user, shell or home that is missing on the node. If there is nothing to repair, the reason says what else is wrong.",
    retryable: true,
  },
  terminal_ui_connecting_stuck: {
    hop: "terminal_ready_frame",
    owner: "control plane",
    message: "Neither a terminal nor a reason came in the time that was promised.",
    action: "Try again, and report it with the correlation id: this should never happen.",
    retryable: true,
  },
  terminal_stream_lost: {
    hop: "gateway_node_stream",
    owner: "network",
    message: "The connection between the node and the gateway broke and did not come back in time.",
    action: "Try again: if the node is back, the same shell is found.",
    retryable: true,
  },
  terminal_node_frame_too_large: {
    hop: "gateway_node_stream",
    owner: "node",
    message:
      "The node sent more than 1 MiB in one message, which no agent of this version does. The shell goes on.",
    action: "Update the agent on the node, then try again.",
    retryable: true,
  },
  terminal_node_revoked: {
    hop: "gateway_node_stream",
    owner: "node",
    message: "The node's identity was revoked while the terminal was in use, so its terminals were ended.",
    action: "Ask the operator of the node: it must be enrolled again before it can have terminals.",
    retryable: false,
  },
  terminal_node_quarantined: {
    hop: "gateway_node_stream",
    owner: "node",
    message: "The node was quarantined while the terminal was in use, so its terminals were ended.",
    action:
      "Ask the operator of the node; its page says why it is quarantined. Open a new terminal once it is active.",
    retryable: false,
  },
  terminal_node_retired: {
    hop: "gateway_node_stream",
    owner: "node",
    message: "The node was retired while the terminal was in use, so its terminals were ended.",
    action: "Create an allocation on another node.",
    retryable: false,
  },
  terminal_session_unknown: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message: "The shell of this page has ended.",
    action: "Open a new one.",
    retryable: false,
  },
  terminal_taken_over: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "This shell was opened in another tab or window, and goes on there.",
    action: "Take it back here, or open a second shell.",
    retryable: true,
  },
  terminal_idle: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "Nothing was typed and nothing was shown for so long that the terminal was closed.",
    action: "Open a new one.",
    retryable: true,
  },
  terminal_time_over: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "The terminal was open for as long as a terminal may be.",
    action: "Open a new one. For long work, start it in tmux or as a job.",
    retryable: true,
  },
  terminal_allocation_released: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message: "The allocation was released, so its terminals were ended and its user is removed from the node.",
    action: "Create a new allocation. The audit trail says who released this one.",
    retryable: false,
  },
  terminal_signed_out: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message: "Whoever opened this terminal was signed out: by choice, or by a new password.",
    action: "Sign in again and open a new terminal.",
    retryable: false,
  },
  terminal_api_token_ended: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message:
      "The API token that opened this terminal is no longer valid: it was revoked, it expired, or its owner left.",
    action: "Create a new API token and open a new terminal with it.",
    retryable: false,
  },
  terminal_access_ended: {
    hop: "terminal_token_mint",
    owner: "tenant",
    message: "You may no longer use this allocation: your membership, your role or your access to it was changed.",
    action: "Ask the owner of the allocation or an administrator of your organization.",
    retryable: false,
  },
  terminal_closed: {
    hop: "browser_terminal_ws",
    owner: "tenant",
    message: "The terminal was closed from elsewhere, with everything that ran in it.",
    action: "Open a new one. The audit trail says who closed it.",
    retryable: true,
  },
  terminal_input_overflow: {
    hop: "workload_terminal_startup_failure",
    owner: "tenant",
    message: "Input was discarded: more came than the shell could take.",
    action: "Copy large data with scp or rsync instead.",
    retryable: true,
  },
} as const satisfies Record<string, TerminalFailureEntry>;

export type TerminalFailureCode = keyof typeof terminalFailures;

export function isTerminalFailure(code: string): code is TerminalFailureCode {
  return Object.hasOwn(terminalFailures, code);
}

/** Ends that somebody or a limit asked for: the terminal is closed then, not failed. */
const intendedEnds: ReadonlySet<string> = new Set([
  "terminal_idle",
  "terminal_time_over",
  "terminal_closed",
  "terminal_allocation_released",
  "terminal_signed_out",
  "terminal_api_token_ended",
  "terminal_access_ended",
] satisfies TerminalFailureCode[]);

export const isIntendedEnd = (code: TerminalFailureCode): boolean => intendedEnds.has(code);

/** What only a client can notice, because nothing of it reached the gateway. */
export const clientFailureCodes = [
  "terminal_public_route_missing",
  "terminal_gateway_upgrade_failed",
  "terminal_ui_connecting_stuck",
] as const satisfies readonly TerminalFailureCode[];
