// The nouns and states of Holdfast, one sentence each. docs/reference/glossary.md is generated from here; API, page,
// command line and docs use these words and no others for these things.

import { preflightResultTitles, preflightStateTitles, preflightStatusTitles } from "./preflight.ts";
import { runNodeStateTitles, runStateTitles } from "./run-titles.ts";
import {
  agentStateTitles,
  allocationStatusTitles,
  auditResultTitles,
  bundleStateTitles,
  canaryStateTitles,
  cancellingTitle,
  certificateTitles,
  contractPartStateTitles,
  deliveryStateTitles,
  executionStateTitles,
  fleetStateTitles,
  incidentStateTitles,
  jobStateTitles,
  layerStateTitles,
  logReplicaTitles,
  nodeAgentStatusTitles,
  nodeConnectionTitles,
  nodeLinkTitles,
  nodeStatusTitles,
  recoveryCheckStateTitles,
  type StateTitle,
  taskSigningKeyTitles,
  taskStatusTitles,
  terminalConnectionTitles,
  terminalStateTitles,
  userStateTitles,
} from "./state-titles.ts";
import {
  hostImageStateTitles,
  itemVerdictTitles,
  jenkinsBuildStateTitles,
  jenkinsControllerStateTitles,
  leaseStateTitles,
} from "./vm-titles.ts";

export const nouns: Record<string, string> = {
  "Jenkins controller":
    "A Jenkins server whose queue is polled: each queued build with a served label gets a VM and a node of its own.",
  "VM host": "A node that runs VMs for leases. It has the capability `vm_host`.",
  agent:
    "The program on a node that connects to the control plane, proves its identity and runs tasks. It listens on loopback only.",
  allocation: "A tenant's place on a node: an OS user with a home directory, owned by one member.",
  attention: "A cause of a node's state, with its reason, severity, hop, owner and next step.",
  audit: "The append-only record of who did what, to what, with which result.",
  "background job":
    "Work that a process repeats on a schedule, such as expiring tasks. Its last result is in `holdfast status`.",
  "base image":
    "The qcow2 file that VMs start from. It is never changed: each VM writes to an overlay of its own.",
  "bootstrap token":
    "A reusable enrollment token (`hfb_`) for one node, with which a rebuilt machine enrolls again without a person.",
  "canary certificate":
    "A short-lived certificate that the api sends through each address that nodes use, to see whether it is accepted there.",
  cause:
    "What is wrong with a node, as far as evidence shows. Everything that it explains is a symptom and not listed beside it.",
  certificate: "The 24-hour X.509 client certificate with which an agent proves which node it is.",
  "control plane": "The processes api and worker with their PostgreSQL database: everything durable is there.",
  "correlation id": "The id of one request, in its answer, in the logs and in the audit.",
  delivery: "A message about an incident to one receiver, with its attempts and what the receiver returned.",
  drain: "To let a node finish its running tasks and give it no new ones.",
  enroll: "To make a machine a node: it sends a token and a certificate request, and gets a certificate.",
  "environment profile":
    "The signed, versioned set of addresses and limits that the control plane gives to every node.",
  evidence: "What observers saw of a node, each at one time. Causes are named from evidence only.",
  "evidence bundle":
    "A signed archive of everything that is recorded about a node, an allocation, an incident or a correlation id, without secrets.",
  execution: "A request to run one step of a workflow on an execution agent. The same request never runs twice.",
  "execution agent":
    "A program in a private network that connects to the gateway and runs steps of workflows. It listens on no port.",
  fleet: "All nodes of an organization that are not retired.",
  gateway:
    "The process in which terminal connections of people and of nodes meet. It has no access to the database.",
  grant: "Access to an allocation that its owner gives another member for a limited time, to view or to use it.",
  heartbeat:
    "The agent's report, every 60 seconds and when something changes. A node that misses two of them is late.",
  hop: "One section of the path from a person through the control plane to the node. A failure names the hop.",
  incident:
    "The time from the first cause found with a node until none is left, under one id. Several with one cause are part of another.",
  ingress: "A proxy in front of the control plane that terminates the nodes' TLS and forwards their certificates.",
  "key-encryption key (KEK)": "The key around the data keys of everything that is sealed in the database.",
  label:
    "A name for a kind of VM that requests can use: its image, its profile, and how many may exist at a time.",
  lease: "A request for one VM, from the request until its host has confirmed that nothing of the VM is left.",
  "local operator":
    "Whoever can read the operator token on the server's machine. It may do everything, and is audited.",
  member: "A person in an organization, with the role owner, admin or member.",
  node: "A machine that runs an agent and belongs to an organization.",
  notification: "The record of a change of an allocation's user state, with the words that its people read.",
  organization: "A tenant: its nodes, projects, members, tokens and audit are visible to nobody else.",
  owner: "Of an allocation: the member it belongs to. Of a failure: who can repair it.",
  "pairing token":
    "An enrollment token (`hfe_`) that works once, for 15 minutes by default. Execution agents have their own (`<organization>.hfx_`).",
  preflight:
    "A check of a node, and of an allocation's terminal on it, hop by hop. It names the first hop that fails, or its cause.",
  profile: "The size of a VM: tiny, small, medium or large.",
  project: "A group of allocations within an organization.",
  quarantine: "To stop a node from getting any task. Running tasks are not stopped.",
  reactivate: "To let a drained or quarantined node get tasks again.",
  reason: "The code of a failure, such as `heartbeat_stale`. Each has one title, owner and next step.",
  receiver:
    "A webhook or a mail address that gets a message when an incident of severity P0 opens, and one when it is over.",
  "recovery bundle":
    "A signed file (`holdfast node bundle create`) that gives one node a new identity, once, with everything that it needs to connect.",
  release: "To end an allocation: its terminals are closed and the node removes its user.",
  repair: "To restore an allocation's user that was deleted or damaged on the node. Its home is not changed.",
  retire: "To remove a node. This cannot be undone; the machine can be enrolled again as a new node.",
  revoke: "To end a token, a grant or a node's certificates before they expire.",
  run: "One execution of a published version of a workflow. Its events say everything that happened in it.",
  scrollback: "The output of a terminal that has scrolled off the screen and is still kept.",
  secret: "A named value of an organization that a step may get. It is written and used, and never shown.",
  "signed task": "A task with the control plane's Ed25519 signature. An agent runs nothing else.",
  stray:
    "Something on a VM host that carries its agent's tag and belongs to no VM with a lease. The safety loop removes it.",
  task: "One typed operation on a node, such as a health probe. There is no task that runs a shell command.",
  tenant: "Whoever uses a node without operating it: a member, and what that member's tokens may do.",
  terminal:
    "A shell of an allocation's user, in the browser or on the command line. It survives lost connections.",
  "user state":
    "What tenants read about the node behind an allocation. Reasons, evidence and incidents are for its operators.",
  worker: "The process that runs most background jobs. It has no listener for people or nodes.",
  workflow: "A document that describes steps and their order. Its draft changes; a published version never does.",
};

export type StateGroup = {
  heading: string;
  /** Where the API returns it. */
  field: string;
  titles: Record<string, StateTitle>;
  /** Shown to people in place of a stored state; no value of the field. */
  derived?: Record<string, StateTitle>;
};

const { detached, ending, ...storedTerminalStates } = terminalStateTitles;
const { revoked, not_yet_valid, ...certificateStages } = certificateTitles;

export const stateGroups: StateGroup[] = [
  { heading: "Node: lifecycle", field: "`status` of a node", titles: nodeStatusTitles },
  { heading: "Node: connection", field: "`connection` of a node", titles: nodeConnectionTitles },
  { heading: "Node: link", field: "`link` of a node", titles: nodeLinkTitles },
  { heading: "Node: agent", field: "`agent_status` of a node", titles: nodeAgentStatusTitles },
  { heading: "Node: layers", field: "each of the `layers` of a node", titles: layerStateTitles },
  {
    heading: "Node: recovery checklist",
    field: "`state` of a check in a node's explanation",
    titles: recoveryCheckStateTitles,
  },
  {
    heading: "Node: parts that can drift",
    field: "`state` of a part in a node's explanation",
    titles: contractPartStateTitles,
  },
  { heading: "Node: state in the fleet", field: "`state` in fleet counts and filters", titles: fleetStateTitles },
  {
    heading: "Certificate of a node",
    field: "not in the API; derived from its times",
    titles: certificateStages,
    derived: { revoked, not_yet_valid },
  },
  { heading: "Allocation", field: "`status` of an allocation", titles: allocationStatusTitles },
  { heading: "Allocation: user state", field: "`user_state` of an allocation", titles: userStateTitles },
  {
    heading: "Task",
    field: "`status` of a task",
    titles: taskStatusTitles,
    derived: { cancelling: cancellingTitle },
  },
  { heading: "Execution", field: "`status` of an execution", titles: executionStateTitles },
  { heading: "Run", field: "`status` of a run", titles: runStateTitles },
  { heading: "Node of a run", field: "`status` of a node of a run", titles: runNodeStateTitles },
  { heading: "Lease", field: "`status` of a lease", titles: leaseStateTitles },
  { heading: "Jenkins controller", field: "`state` of a controller", titles: jenkinsControllerStateTitles },
  { heading: "Build of a Jenkins controller", field: "`status` of a build", titles: jenkinsBuildStateTitles },
  { heading: "Queued item of a Jenkins controller", field: "`verdict` of an item", titles: itemVerdictTitles },
  { heading: "Image on a host", field: "`state` of a host in an image", titles: hostImageStateTitles },
  { heading: "Execution agent", field: "`status` of an execution agent", titles: agentStateTitles },
  {
    heading: "Terminal",
    field: "`state` of a terminal",
    titles: storedTerminalStates,
    derived: { detached, ending },
  },
  {
    heading: "Terminal: connection of a client",
    field: "not in the API; each client knows its own",
    titles: terminalConnectionTitles,
  },
  { heading: "Preflight", field: "`state` of a preflight", titles: preflightStateTitles },
  { heading: "Preflight: result", field: "`result` of a preflight", titles: preflightResultTitles },
  { heading: "Preflight: hop", field: "`status` of a hop in a preflight", titles: preflightStatusTitles },
  { heading: "Incident", field: "`state` of an incident", titles: incidentStateTitles },
  { heading: "Delivery", field: "`state` of a delivery", titles: deliveryStateTitles },
  {
    heading: "Process with log lines",
    field: "`state` of a process that was asked for log lines",
    titles: logReplicaTitles,
  },
  { heading: "Recovery bundle", field: "`state` of a recovery bundle", titles: bundleStateTitles },
  { heading: "Audit event", field: "`result` of an audit event", titles: auditResultTitles },
  { heading: "Background job", field: "`state` of a background job", titles: jobStateTitles },
  {
    heading: "Canary certificate",
    field: "`state` of a canary in the status of the platform",
    titles: canaryStateTitles,
  },
  { heading: "Task signing key", field: "`state` of a key", titles: taskSigningKeyTitles },
];
