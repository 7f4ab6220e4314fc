// The closed sets that a reason is described with, and the shape that every reason has. The ids of next actions, user
// states and severities are those of the failure matrix; a test compares them. No schema library here: pages and agents
// load these files.

import type { HopDetail, TerminalHop } from "./hops.ts";
import type { NodeOwner, OwnerId, TerminalOwner } from "./owners.ts";

/** What kind of trouble it is. Code that treats several reasons alike decides by class instead of listing codes. */
export const reasonClasses = [
  /** Nothing is wrong, or somebody wanted it. */
  "none",
  /** No report arrives, and the reason is not known. */
  "silence",
  /** The network between a node and the control plane, or between a client and the gateway. */
  "link",
  /** The control plane does not accept this identity, or the node has none to present. Only a person can change that. */
  "rejection",
  /** Certificates, trust and addresses that need upkeep. */
  "identity",
  "host",
  "platform",
  "task",
  "terminal",
  /** What a user may do: permission, limits, sign-in. */
  "access",
  "security",
] as const;
export type ReasonClass = (typeof reasonClasses)[number];

export const severities = ["P0", "P1", "P2"] as const;
export type Severity = (typeof severities)[number];

/** What a tenant sees of it. Reason codes are for operators. */
export const userStates = [
  "normal",
  "temporary",
  "recovering",
  "operator_action_required",
  "security_action_required",
] as const;
export type UserState = (typeof userStates)[number];

/** The kind of repair. `nextStep` of a reason says it in full, with the commands. */
export const nextActions = {
  wait: "Wait: the product repairs this itself.",
  repair_certs: "Install the right certificate and CA files on the host, then restart its agent.",
  re_enroll: "Enroll this node again with a token created for it.",
  repair_endpoint_profile: "Correct the addresses of the environment profile, or the node's copy of them.",
  rebootstrap: "Apply a bundle from the operator on the host: the node cannot recover on its own.",
  reactivate: "Decide whether the node may return, then reactivate it or enroll it again.",
  fix_control_plane: "Repair the control plane first. Repairs on nodes do not last before that.",
  restart_agent: "Start the agent on the host, and read in its log why it stopped.",
  sync_time: "Synchronize the clock before checking any certificate.",
  update_agent: "Install the agent build that fits this host and this control plane.",
  reimage: "Keep the host quarantined, wipe it, and enroll it under a new identity.",
  free_disk: "Free disk space and stop whatever fills the disk.",
  repair_network: "Restore the route, name resolution or firewall rule.",
  repair_edge_route: "Restore the public route, the edge rule or the gateway behind it.",
  repair_allocation_user: "Repair the allocation's user, shell and home on the host.",
  repair_ops_access: "Restore operator login to the host. The agent is healthy.",
  replay_task: "Run the task again if it may run twice.",
  repair_app: "Restart or redeploy the app, and find out why its process ended.",
  repair_app_route: "Repair the route to the app: sign-in, headers, upstream.",
  repair_credential: "Renew the app's credential once, and check that the failures stop.",
  fix_access: "Check sign-in, role, limits, and that the allocation is active. Then try again.",
  none: "Nothing to do.",
} as const;
export type NextAction = keyof typeof nextActions;
export const nextActionIds = Object.keys(nextActions) as [NextAction, ...NextAction[]];

/** What can be the code of a reason at all: agents may have newer ones than the server. */
export const reasonForm = /^[a-z0-9_]{1,64}$/;

/** What every reason has, whoever raises it. */
export type ReasonFacts = {
  /** A few words for headings and lists. The code is shown beside it. */
  title: string;
  /** What happened, to a person. */
  message: string;
  /** What to do now, with commands that can be pasted. `<id>` stands for the node. */
  nextStep: string;
  class: ReasonClass;
  /** Who repairs it. Null: there is nothing to repair. */
  owner: OwnerId | null;
  /** Null: not a fault. */
  severity: Severity | null;
  userState: UserState;
  nextAction: NextAction;
  /** Codes of which this one is a symptom: while one of them is present, this one is not the cause. */
  dependsOn: readonly string[];
};

/** Something that can be wrong with a node. */
export type NodeReason = ReasonFacts & {
  /** Where on the way between agent and server; null: nowhere on it. */
  at: HopDetail | null;
  /** What dashboards and alarms call it. */
  signal: string | null;
  /** The public word for the owner, where it is older than the ids and is not the group of this one. */
  ownerWord?: NodeOwner;
  /** Only the next answer of the server disproves it. Any other reason is checked again, or is over. */
  untilAnswered?: true;
};

/**
 * What a client can offer. `same`: return to the shell, if there was one. `later`: open a new one, once somebody has
 * removed the obstacle. `take_back`: move the shell here again.
 */
export type Remedy = "same" | "later" | "take_back" | "new" | "none";

/** Why a terminal did not open, or ended. */
export type TerminalReason = ReasonFacts & {
  hop: TerminalHop;
  /** What dashboards and alarms call it, if not by its own code. */
  signal?: string;
  /** The public word for the owner, where it is older than the ids and is not the group of this one. */
  ownerWord?: TerminalOwner;
  /** Trying again, unchanged, may work. */
  retryable: boolean;
  remedy: Remedy;
  /** What else helps: a repair of the allocation, or a look at one's own terminals. */
  alsoOffer?: "repair" | "own_terminals";
  /** A person requested this end, or a limit caused it: the terminal is closed then, not failed. */
  intendedEnd?: true;
  /** Only a client can notice it, because nothing of it reaches the gateway. */
  clientNoticed?: true;
  /** An open terminal that ends with it leaves its shell running. */
  shellSurvives?: true;
};
