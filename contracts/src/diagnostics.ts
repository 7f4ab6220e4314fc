// Why an agent is not well, in the words of the catalogue. The agent writes such a record before
// every decision to try again; `holdfast agent diagnose` and the node's page read them.

/** Who can mend it. */
export const diagnosticOwners = ["nobody", "node", "network", "platform"] as const;
export type DiagnosticOwner = (typeof diagnosticOwners)[number];

/** Where the chain between a host's agent and the server is broken. The names are those of the preflight runbook. */
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

/** `at` is null when nothing is wrong on the way; `signal` is what dashboards and alarms call it. */
type DiagnosticEntry = {
  at: HopDetail | null;
  signal: string | null;
  message: string;
  owner: DiagnosticOwner;
  nextStep: string;
};

export const diagnosticReasons = {
  process_alive: {
    at: null,
    signal: null,
    message: "The agent runs and reaches the server.",
    owner: "nobody",
    nextStep: "Nothing to do.",
  },
  agent_down: {
    at: "agent_process",
    signal: "node_agent_process_down",
    message: "The agent does not run on this host.",
    owner: "node",
    nextStep:
      "Start it: `holdfast agent run`, or the service that runs it; its log (journalctl) says why it ended.",
  },
  agent_version_drift: {
    at: "agent_process",
    signal: "node_agent_binary_invalid",
    message: "The server does not understand this agent: it is of another version, or not whole.",
    owner: "node",
    nextStep: "Install the agent that belongs to the server; `holdfast --version` on both sides tells which.",
  },
  api_name_unresolved: {
    at: "dns",
    signal: "node_agent_api_unreachable",
    message: "The server's name could not be resolved.",
    owner: "network",
    nextStep:
      "On this host, ask for the name (`getent hosts <name>`) and look at /etc/resolv.conf; the name server is at fault, or the way to it.",
  },
  api_unreachable: {
    at: "tcp",
    signal: "node_agent_api_unreachable",
    message: "The server cannot be reached over the network.",
    owner: "network",
    nextStep: "From this host, check name resolution, route and firewall towards the server's node address.",
  },
  link_slow: {
    at: "tcp",
    signal: "node_agent_link_slow",
    message: "The server answers this host slowly.",
    owner: "network",
    nextStep:
      "Tasks go on, later than usual. If other nodes are quick, look for delay and loss between here and the server.",
  },
  control_plane_unreachable: {
    at: "api",
    signal: "control_plane_unreachable",
    message: "Something answers at the server's address, but the server behind it is not ready.",
    owner: "platform",
    nextStep: "Wait; the agent tries again by itself. The operator looks at `holdfast status` on the server.",
  },
  server_tls_untrusted: {
    at: "tls",
    signal: "node_agent_api_tls_failed",
    message: "The server's certificate is not signed by the CA this agent was enrolled with.",
    owner: "platform",
    nextStep: "Check that the address leads to the right server and that no proxy opens TLS on the way.",
  },
  endpoint_profile_drift: {
    at: "profile",
    signal: "endpoint_profile_drift",
    message:
      "The agent's address differs from the one in the environment profile, or it does not lead to the node-facing API.",
    owner: "platform",
    nextStep:
      "Check HOLDFAST_NODE_API_URL on the server and that the address is reachable from this host. The agent tries it again by itself.",
  },
  identity_update_failed: {
    at: "identity",
    signal: "node_identity_update_failed",
    message:
      "A new certificate, CA, profile or address did not work from this host; the agent keeps using the previous one.",
    owner: "platform",
    nextStep:
      "The detail names it and the error. Correct it on the server (an address: HOLDFAST_NODE_API_URL); the agent tries again by itself.",
  },
  edge_rate_limited: {
    at: "edge",
    signal: "edge_rate_limited",
    message: "The server or a proxy in front of it asks the agent to slow down.",
    owner: "platform",
    nextStep:
      "Nothing on this host: the agent polls more slowly. The operator looks at the limits of the ingress.",
  },
  auth_failed: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "The server does not accept this agent's certificate.",
    owner: "platform",
    nextStep: "Enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  cert_expired: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "This agent's certificate has expired.",
    owner: "node",
    nextStep: "Check the clock first. Then enroll this node again: `holdfast node token create --node <id>`.",
  },
  cert_renewal_overdue: {
    at: "identity",
    signal: "cert_renewal_overdue",
    message: "This agent's certificate should have been renewed by now.",
    owner: "node",
    nextStep: "Look at the reason beside it: the agent tries again at every heartbeat until it expires.",
  },
  identity_revoked: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "The server no longer accepts this node's identity: it was revoked, or its certificate was replaced.",
    owner: "platform",
    nextStep:
      "Ask the operator why. To accept the node again: make a token with `holdfast node token create --node <id>`, run `holdfast agent join` with it here, then `holdfast node reactivate <id>`.",
  },
  identity_retired: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "The operator has retired this node, which cannot be undone.",
    owner: "platform",
    nextStep:
      "Ask the operator why. To enroll this machine as a new node: make a token with `holdfast node token create`, then run `holdfast agent join --force` with it here.",
  },
  identity_key_missing: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "The file with this node's key and certificate is missing or cannot be read.",
    owner: "node",
    nextStep:
      "Restore it, or enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  trust_bundle_invalid: {
    at: "tls",
    signal: "node_agent_api_tls_failed",
    message: "The file with the server's CA is missing, or is not the one this node was enrolled with.",
    owner: "node",
    nextStep:
      "Restore it, or enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  trust_update_refused: {
    at: "tls",
    signal: "node_agent_trust_update_refused",
    message:
      "The agent refused a change of task signing keys, roots or addresses: it is unsigned, signed by somebody else, or older. It keeps what it has.",
    owner: "platform",
    nextStep:
      "Treat it as an attack until explained: find the ingress or proxy between this host and the api that changed the answer. " +
      "Replace its token (HOLDFAST_INGRESS_TOKEN) if it was taken over.",
  },
  recovery_enrollment_blocked: {
    at: "identity",
    signal: "node_agent_auth_failed",
    message: "This host cannot enroll by itself.",
    owner: "platform",
    nextStep: "Ask the operator for a token made for this node: `holdfast node token create --node <id>`.",
  },
  node_quarantined: {
    at: "standing",
    signal: "identity_revoked_or_fenced",
    message: "The operator has fenced this node: it gets no tasks until it is reactivated.",
    owner: "platform",
    nextStep: "Ask the operator why; `holdfast node reactivate <id>` ends it.",
  },
  clock_skew: {
    at: "host_clock",
    signal: "clock_skew",
    message: "This host's clock differs from the server's by more than a minute.",
    owner: "node",
    nextStep:
      "Sync the time first (timedatectl set-ntp true, or chronyc makestep); certificates and tasks depend on it.",
  },
  disk_full: {
    at: "host_disk",
    signal: "disk_full",
    message:
      "The disk with the agent's state is full: its certificate cannot be renewed, and without room for a journal it takes no tasks.",
    owner: "node",
    nextStep: "Free space on that file system; the agent goes on by itself.",
  },
  diagnostics_unwritable: {
    at: "host_disk",
    signal: "diagnostics_unwritable",
    message:
      "The agent's history on this host cannot be read or written; it is kept in memory and in the log only.",
    owner: "node",
    nextStep:
      "Look at diagnostics.log in the agent's state directory: it must be a file of the agent's user. Move anything else away; the agent makes a new one by itself.",
  },
  state_dir_read_only: {
    at: "host_disk",
    signal: "state_dir_read_only",
    message: "The agent cannot write to its state directory.",
    owner: "node",
    nextStep: "Mount it writable and check its owner; the agent takes no tasks meanwhile.",
  },
  node_observability_disk_pressure: {
    at: "host_disk",
    signal: "node_observability_disk_pressure",
    message: "The root file system is nearly full.",
    owner: "node",
    nextStep: "Free space before tasks begin to fail.",
  },
  task_poll_failed: {
    at: "task_claim",
    signal: "node_task_claim_failed",
    message: "Asking for tasks failed.",
    owner: "network",
    nextStep: "Look at the detail; the agent tries again by itself.",
  },
  task_result_failed: {
    at: "task_result",
    signal: "node_task_result_post_failed",
    message: "A result could not be delivered yet; it is kept in the journal.",
    owner: "network",
    nextStep: "Nothing is lost: it is delivered when the server answers again.",
  },
  task_refused: {
    at: "task_claim",
    signal: "node_task_claim_failed",
    message: "The agent refused a task.",
    owner: "platform",
    nextStep: "The detail names the reason; signature problems point to tampering or to keys out of step.",
  },
  certificate_header_refused: {
    at: "agent_process",
    signal: "node_agent_certificate_header_refused",
    message: "A process sent this agent a request with the header that only an ingress sends to the server.",
    owner: "node",
    nextStep: "Find out who on this host probes the agent's port; the request was refused and changed nothing.",
  },
  terminal_gateway_unreachable: {
    at: "terminal_stream",
    signal: "terminal_node_stream_timeout",
    message: "A terminal's stream did not get through to the terminal gateway.",
    owner: "network",
    nextStep:
      "From this host, check name resolution, route and firewall to the gateway's node-facing address: HOLDFAST_NODE_TERMINAL_URL at the gateway.",
  },
  terminal_failed: {
    at: "terminal_pty",
    signal: "terminal_pty_failed",
    message: "A terminal could not be opened on this host, or broke.",
    owner: "node",
    nextStep:
      "The detail names the reason: the user, its shell, its home or the PTY. Put it right and open a new one.",
  },
} as const satisfies Record<string, DiagnosticEntry>;

export type DiagnosticReason = keyof typeof diagnosticReasons;
export const diagnosticReasonNames = Object.keys(diagnosticReasons) as [DiagnosticReason, ...DiagnosticReason[]];
