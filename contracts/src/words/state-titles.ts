// What people read for each state: a title and one sentence. The page, the command line and the generated glossary all
// take them from here. API values never change; titles may. No schema library here: pages read it too.

import type { AgentState } from "../endpoints/agents.ts";
import type { AllocationStatus } from "../endpoints/allocations.ts";
import type { AuditResult } from "../endpoints/audit.ts";
import type { BundleSummary } from "../endpoints/bundles.ts";
import type {
  ContractPart,
  ContractPartState,
  LayerState,
  RecoveryCheck,
  RecoveryCheckState,
} from "../endpoints/drift.ts";
import type { ExecutionState } from "../endpoints/executions.ts";
import type { FleetState } from "../endpoints/fleet.ts";
import type { Incident } from "../endpoints/incidents.ts";
import type { LogReplica } from "../endpoints/logs.ts";
import type { NodeAgentStatus, NodeConnection, NodeLink } from "../endpoints/nodes.ts";
import type { DeliveryState } from "../endpoints/notify.ts";
import type { BackgroundJob, CanaryResult } from "../endpoints/platform.ts";
import type { TaskSigningKeyState } from "../endpoints/task-signing-keys.ts";
import type { TaskStatus } from "../endpoints/tasks.ts";
import type { TerminalState } from "../endpoints/terminals.ts";
import type { CertificateStage } from "../node/certificate-stage.ts";
import type { NodeStatus } from "../node/protocol.ts";
import type { UserState } from "../reasons/vocabulary.ts";
import type { ReadinessStep } from "../terminal/frames.ts";

export type StateTitle = { title: string; meaning: string };

export const nodeStatusTitles: Record<NodeStatus, StateTitle> = {
  enrolling: { title: "Enrolling", meaning: "The node has its certificate and has not sent a heartbeat yet." },
  active: { title: "Active", meaning: "The node accepts tasks." },
  draining: {
    title: "Draining",
    meaning: "The node finishes its running tasks and accepts no new ones, until it is reactivated.",
  },
  quarantined: {
    title: "Quarantined",
    meaning: "An operator has stopped the node from getting tasks, until it is reactivated.",
  },
  retired: { title: "Retired", meaning: "The node was removed. This cannot be undone; its history is kept." },
};

export const nodeConnectionTitles: Record<NodeConnection, StateTitle> = {
  online: { title: "Online", meaning: "The agent is connected, and its last heartbeat arrived in time." },
  stale: { title: "Late", meaning: "Heartbeats are missing. Nothing is known about the connection." },
  offline: { title: "Offline", meaning: "The agent's connection ended, and it did not connect again." },
  never: { title: "Never connected", meaning: "The node is enrolled and has never sent a heartbeat." },
};

export const nodeAgentStatusTitles: Record<NodeAgentStatus, StateTitle> = {
  healthy: { title: "Healthy", meaning: "The agent reports, and nothing keeps it from its work." },
  stale: { title: "Not reporting", meaning: "The agent does not report. The reason is not known." },
  auth_failed: { title: "Not authenticated", meaning: "The server does not accept the agent's certificate." },
  api_unreachable: { title: "Server unreachable", meaning: "The agent cannot reach the server." },
  task_result_failed: { title: "Results not delivered", meaning: "Results of tasks do not reach the server." },
  unknown: { title: "Unknown", meaning: "Nothing is known about the agent." },
};

export const layerStateTitles: Record<LayerState, StateTitle> = {
  working: { title: "Working", meaning: "Fresh evidence shows that it works." },
  impaired: { title: "Impaired", meaning: "A cause concerns it." },
  recovering: { title: "Recovering", meaning: "The cause is gone, and the recovery is being checked." },
  unknown: { title: "Unknown", meaning: "No fresh evidence shows whether it works." },
};

export const recoveryCheckTitles: Record<RecoveryCheck, string> = {
  heartbeat_current: "Heartbeat current",
  certificate_trusted: "Certificate issuer trusted by the ingress",
  task_wait_succeeds: "Connected with its certificate, waiting for tasks",
  task_completed: "A task completed",
  no_expired_work: "No expired tasks shown as current",
};

export const recoveryCheckStateTitles: Record<RecoveryCheckState, StateTitle> = {
  done: { title: "Done", meaning: "Fresh evidence shows it." },
  failed: { title: "Failed", meaning: "Evidence shows the opposite." },
  unknown: { title: "Unknown", meaning: "No fresh evidence shows it." },
};

export const contractPartTitles: Record<ContractPart, string> = {
  process_liveness: "Agent process",
  endpoint_identity: "Server addresses",
  node_certificate: "Node certificate",
  signing_ca: "Signing CA",
  ingress_acceptance: "Accepted by the server",
  task_truth: "Tasks",
  app_runtime: "Apps",
};

export const contractPartStateTitles: Record<ContractPartState, StateTitle> = {
  in_order: { title: "In order", meaning: "A fresh observation of it shows nothing wrong." },
  drifted: { title: "Drifted", meaning: "A cause rests on an observation of it." },
  unknown: { title: "Unknown", meaning: "No fresh observation of it exists." },
};

export const incidentStateTitles: Record<Incident["state"], StateTitle> = {
  open: { title: "Open", meaning: "At least one cause is found with the node, or enough nodes share it." },
  closed: { title: "Closed", meaning: "No cause is left, and a recovery that needs it was verified." },
};

export const nodeLinkTitles: Record<NodeLink, StateTitle> = {
  stream: { title: "Stream", meaning: "One connection that stays open. Tasks are sent over it at once." },
  poll: {
    title: "Polling",
    meaning: "The agent asks for tasks again and again, where a proxy does not pass on streams or it was set to.",
  },
};

export const fleetStateTitles: Record<FleetState, StateTitle> = {
  silent: { title: "Offline", meaning: "No heartbeat arrived in time." },
  troubled: { title: "Degraded", meaning: "Online, with at least one problem that needs attention." },
  fenced: { title: "Quarantined", meaning: nodeStatusTitles.quarantined.meaning },
  draining: { title: "Draining", meaning: nodeStatusTitles.draining.meaning },
  joining: { title: "Enrolling", meaning: nodeStatusTitles.enrolling.meaning },
  fine: { title: "Healthy", meaning: "Online, with no problems." },
};

export const allocationStatusTitles: Record<AllocationStatus, StateTitle> = {
  requested: { title: "Requested", meaning: "The node has not confirmed yet that it created the user." },
  active: { title: "Ready", meaning: "The node has created the user. It can be used." },
  releasing: { title: "Releasing", meaning: "The node has not confirmed yet that it removed the user." },
  released: {
    title: "Released",
    meaning: "The allocation has ended. Its record says whether the user was removed.",
  },
  failed: { title: "Failed", meaning: "The node could not create or remove the user. The reason says why." },
};

/** All that a tenant reads about the node behind an allocation. It is true for every reason that leads to the state. */
export const userStateTitles: Record<UserState, StateTitle> = {
  normal: { title: "Normal", meaning: "No problem is known that affects this allocation." },
  temporary: {
    title: "Temporarily limited",
    meaning:
      "The machine cannot be fully managed at the moment. Programs on it may still be running; new terminals and changes may have to wait. You need not do anything.",
  },
  recovering: {
    title: "Recovering",
    meaning:
      "The machine is being reconnected or checked automatically. Programs on it may still be running; new terminals and changes may have to wait. You need not do anything.",
  },
  operator_action_required: {
    title: "Waiting for an operator",
    meaning:
      "An operator has to make a repair before everything works again. Programs on the machine may still be running. Trying again does not help until then.",
  },
  security_action_required: {
    title: "Security check required",
    meaning:
      "The machine may have a security problem. Do not use it until an operator has checked it, and ask an administrator of your organization if you need access sooner.",
  },
};

export const taskStatusTitles: Record<TaskStatus, StateTitle> = {
  queued: { title: "Queued", meaning: "Waiting for the node to claim it." },
  dispatched: { title: "Running", meaning: "The node has claimed it and has not reported a result." },
  completed: { title: "Completed", meaning: "The node reported success." },
  failed: { title: "Failed", meaning: "The node reported a failure." },
  expired: {
    title: "Expired",
    meaning: "Its time ran out: the node did not claim it, or no result arrived in time.",
  },
  cancelled: { title: "Cancelled", meaning: "It was cancelled before it completed." },
};

/** A running task for which a cancellation was requested. */
export const cancellingTitle: StateTitle = {
  title: "Cancelling",
  meaning: "Cancellation was requested; the node has not confirmed it yet.",
};

export const terminalStateTitles: Record<TerminalState | "detached" | "ending", StateTitle> = {
  opening: { title: "Opening", meaning: "The shell is being started." },
  open: { title: "Attached", meaning: "A client is connected to the shell." },
  detached: { title: "Detached", meaning: "The shell is running and no client is connected to it." },
  ending: { title: "Ending", meaning: "It was asked to end; its gateway has not confirmed it yet." },
  closed: { title: "Ended", meaning: "The shell has exited, or was ended." },
  failed: { title: "Failed", meaning: "The terminal could not be opened, or broke. The failure names the hop." },
};

/** What people read for the state of a terminal: detached and ending ones are stored as open. */
export function terminalStateShown(terminal: {
  state: TerminalState;
  attached: boolean;
  ending: boolean;
}): keyof typeof terminalStateTitles {
  if (terminal.ending) return "ending";
  return terminal.state === "open" && !terminal.attached ? "detached" : terminal.state;
}

/** A client's connection to its terminal, as the client sees it. */
export const terminalConnectionTitles = {
  connecting: { title: "Connecting", meaning: "The client is opening the terminal." },
  connected: { title: "Connected", meaning: "The client is connected to the shell." },
  unresponsive: {
    title: "Unresponsive",
    meaning: "The gateway or the node does not respond; the shell may still be running.",
  },
  disconnected: { title: "Disconnected", meaning: "The connection was lost; the shell may still be running." },
  reconnecting: { title: "Reconnecting", meaning: "The client is connecting to the same shell again." },
  not_connected: { title: "Not connected", meaning: "The terminal could not be opened. The failure says why." },
  ended: terminalStateTitles.closed,
} as const satisfies Record<string, StateTitle>;

/** The steps of an opening: while one is awaited, and once it is reached. */
export const readinessStepTitles: Record<ReadinessStep, { awaited: string; reached: string }> = {
  token_ready: { awaited: "Requesting access", reached: "Access granted" },
  browser_ws_ready: {
    awaited: "Connecting to the terminal gateway",
    reached: "Connected to the terminal gateway",
  },
  terminal_open_sent: { awaited: "Requesting a shell from the node", reached: "Shell requested from the node" },
  node_stream_connected: { awaited: "Waiting for the node's stream", reached: "Node's stream connected" },
  pty_ready: { awaited: "Starting the shell", reached: "Shell started" },
};

export const executionStateTitles: Record<ExecutionState, StateTitle> = {
  pending: { title: "Waiting for an agent", meaning: "No agent can take the request at the moment." },
  dispatched: { title: "Dispatched", meaning: "The request is given to an agent, which has not accepted it yet." },
  running: { title: "Running", meaning: "The agent has accepted the request and runs the step." },
  succeeded: { title: "Succeeded", meaning: "The agent reported that the step succeeded." },
  failed: {
    title: "Failed",
    meaning: "The step failed, or its agent reported no result in time. The error says which.",
  },
  cancelled: { title: "Cancelled", meaning: "A person cancelled the request, and it has ended." },
  unplaced: {
    title: "No agent",
    meaning: "No agent could take the request in time. It never ran, and can be dispatched again.",
  },
};

export const agentStateTitles: Record<AgentState, StateTitle> = {
  online: { title: "Online", meaning: "The agent was connected within the last minute, or the time that is set." },
  offline: { title: "Offline", meaning: "The agent is not connected." },
  revoked: {
    title: "Revoked",
    meaning: "The agent's token is no longer accepted. To use the agent again, pair it.",
  },
};

export const auditResultTitles: Record<AuditResult, StateTitle> = {
  allowed: { title: "Allowed", meaning: "The action was permitted and done." },
  denied: { title: "Denied", meaning: "The action was not permitted. Nothing changed." },
  failed: { title: "Failed", meaning: "The action was permitted and could not be done." },
};

export const certificateTitles: Record<CertificateStage | "revoked" | "not_yet_valid", StateTitle> = {
  current: { title: "Valid", meaning: "The certificate is accepted and its renewal is not overdue." },
  renewal_overdue: {
    title: "Renewal overdue",
    meaning: "Renewal has failed for hours; a quarter of the certificate's lifetime is left.",
  },
  expired: {
    title: "Expired",
    meaning: "The certificate is no longer accepted. The node must be enrolled again.",
  },
  revoked: { title: "Revoked", meaning: "An operator has revoked the certificate. It is no longer accepted." },
  not_yet_valid: {
    title: "Not valid yet",
    meaning: "The certificate's validity has not begun: compare the clocks.",
  },
};

export const taskSigningKeyTitles: Record<TaskSigningKeyState, StateTitle> = {
  next: { title: "Next", meaning: "Published to the nodes; it signs from the stated time." },
  signing: { title: "Signing", meaning: "New tasks are signed with it." },
  verifying: {
    title: "Verifying only",
    meaning: "It signs nothing; tasks that it signed earlier are still accepted.",
  },
};

export const deliveryStateTitles: Record<DeliveryState, StateTitle> = {
  pending: {
    title: "Pending",
    meaning: "The receiver has not accepted the message yet. It is sent again until it does.",
  },
  delivered: { title: "Delivered", meaning: "The receiver has accepted the message." },
  failed: { title: "Failed", meaning: "The receiver has not accepted the message, and it is not sent again." },
  cancelled: { title: "Cancelled", meaning: "The receiver was removed before it accepted the message." },
};

export const jobStateTitles: Record<BackgroundJob["state"], StateTitle> = {
  waiting: { title: "Waiting", meaning: "The job has not run yet." },
  ok: { title: "Healthy", meaning: "The last turn succeeded." },
  failing: { title: "Failing", meaning: "The last turn failed; the next one tries again." },
};

export const canaryStateTitles: Record<CanaryResult["state"], StateTitle> = {
  accepted: { title: "Accepted", meaning: "The canary arrived at a listener of the control plane." },
  rejected: {
    title: "Rejected",
    meaning: "Certificates of the signing CA are not accepted at this address, so the control plane issues none.",
  },
  unreachable: {
    title: "Unreachable",
    meaning: "The canary did not arrive. Whether certificates are accepted there is not known.",
  },
};

export const logReplicaTitles: Record<LogReplica["state"], StateTitle> = {
  answered: { title: "Answered", meaning: "The process returned the lines that it keeps." },
  unreachable: {
    title: "Unreachable",
    meaning: "The process did not answer within four seconds. Its lines are missing from the result.",
  },
  keeps_none: {
    title: "Keeps none",
    meaning: "The process keeps no lines, because `HOLDFAST_LOG_STORE_DIR` is not set or cannot be written.",
  },
};

export const bundleStateTitles: Record<BundleSummary["state"], StateTitle> = {
  created: { title: "Created", meaning: "The bundle has not been used yet." },
  used: { title: "Used", meaning: "The node got a new identity with the bundle. It cannot be used again." },
  expired: { title: "Expired", meaning: "The bundle was not used in time." },
  revoked: {
    title: "Revoked",
    meaning: "An operator revoked the bundle, or the node got another identity before it was used.",
  },
};
