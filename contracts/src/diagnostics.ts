// Why an agent is not well, in the words of the catalogue. The agent writes such a record before
// every decision to try again; `holdfast agent diagnose` and the node's page read them.

/** Who can mend it. */
export type DiagnosticOwner = "nobody" | "node" | "network" | "platform";

type DiagnosticEntry = { message: string; owner: DiagnosticOwner; nextStep: string };

export const diagnosticReasons = {
  process_alive: {
    message: "The agent runs and reaches the server.",
    owner: "nobody",
    nextStep: "Nothing to do.",
  },
  api_unreachable: {
    message: "The server cannot be reached over the network.",
    owner: "network",
    nextStep: "From this host, check name resolution, route and firewall towards the server's node address.",
  },
  control_plane_unreachable: {
    message: "Something answers at the server's address, but the server behind it is not ready.",
    owner: "platform",
    nextStep: "Wait; the agent tries again by itself. The operator looks at `holdfast status` on the server.",
  },
  server_tls_untrusted: {
    message: "The server's certificate is not signed by the CA this agent was enrolled with.",
    owner: "platform",
    nextStep: "Check that the address leads to the right server and that no proxy opens TLS on the way.",
  },
  endpoint_profile_drift: {
    message: "This agent uses other addresses than the server's present environment profile.",
    owner: "platform",
    nextStep: "Restart the agent after its profile was refreshed; if it stays, enroll the node again.",
  },
  edge_rate_limited: {
    message: "The server or a proxy in front of it asks the agent to slow down.",
    owner: "platform",
    nextStep:
      "Nothing on this host: the agent polls more slowly. The operator looks at the limits of the ingress.",
  },
  auth_failed: {
    message: "The server does not accept this agent's certificate.",
    owner: "platform",
    nextStep: "Enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  cert_expired: {
    message: "This agent's certificate has expired.",
    owner: "node",
    nextStep: "Check the clock first. Then enroll this node again: `holdfast node token create --node <id>`.",
  },
  cert_renewal_overdue: {
    message: "This agent's certificate should have been renewed by now.",
    owner: "node",
    nextStep: "Look at the reason beside it: the agent tries again at every heartbeat until it expires.",
  },
  identity_revoked: {
    message: "The operator has revoked this node's identity.",
    owner: "platform",
    nextStep:
      "Ask the operator why. To take the node in again they make a token: `holdfast node token create --node <id>`.",
  },
  identity_key_missing: {
    message: "The file with this node's key and certificate is missing or cannot be read.",
    owner: "node",
    nextStep:
      "Restore it, or enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  trust_bundle_invalid: {
    message: "The file with the server's CA is missing, or is not the one this node was enrolled with.",
    owner: "node",
    nextStep:
      "Restore it, or enroll this node again with a token made for it: `holdfast node token create --node <id>`.",
  },
  recovery_enrollment_blocked: {
    message: "This host cannot enroll by itself.",
    owner: "platform",
    nextStep: "Ask the operator for a token made for this node: `holdfast node token create --node <id>`.",
  },
  node_quarantined: {
    message: "The operator has fenced this node: it gets no tasks until it is reactivated.",
    owner: "platform",
    nextStep: "Ask the operator why; `holdfast node reactivate <id>` ends it.",
  },
  clock_skew: {
    message: "This host's clock differs from the server's by more than a minute.",
    owner: "node",
    nextStep:
      "Sync the time first (timedatectl set-ntp true, or chronyc makestep); certificates and tasks depend on it.",
  },
  disk_full: {
    message: "The disk with the agent's state is full: it takes no new tasks, and still delivers results it has.",
    owner: "node",
    nextStep: "Free space on that file system; the agent goes on by itself.",
  },
  state_dir_read_only: {
    message: "The agent cannot write to its state directory.",
    owner: "node",
    nextStep: "Mount it writable and check its owner; the agent takes no tasks meanwhile.",
  },
  node_observability_disk_pressure: {
    message: "The root file system is nearly full.",
    owner: "node",
    nextStep: "Free space before tasks begin to fail.",
  },
  task_poll_failed: {
    message: "Asking for tasks failed.",
    owner: "network",
    nextStep: "Look at the detail; the agent tries again by itself.",
  },
  task_result_failed: {
    message: "A result could not be delivered yet; it is kept in the journal.",
    owner: "network",
    nextStep: "Nothing is lost: it is delivered when the server answers again.",
  },
  task_refused: {
    message: "The agent refused a task.",
    owner: "platform",
    nextStep: "The detail names the reason; signature problems point to tampering or to keys out of step.",
  },
  terminal_gateway_unreachable: {
    message: "A terminal's stream did not get through to the terminal gateway.",
    owner: "network",
    nextStep:
      "From this host, check name resolution, route and firewall towards the gateway's node address (port 18443).",
  },
  terminal_failed: {
    message: "A terminal could not be opened on this host, or broke.",
    owner: "node",
    nextStep:
      "The detail names the reason: the user, its shell, its home or the PTY. Put it right and open a new one.",
  },
} as const satisfies Record<string, DiagnosticEntry>;

export type DiagnosticReason = keyof typeof diagnosticReasons;
export const diagnosticReasonNames = Object.keys(diagnosticReasons) as [DiagnosticReason, ...DiagnosticReason[]];
