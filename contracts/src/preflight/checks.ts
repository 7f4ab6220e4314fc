// The checks of a preflight, in the one order in which they are made and printed. Names are those of the terminal preflight
// runbook. No schema library here: pages and agents load it.

/** `node`: made of every node. `allocation`: needs an allocation on it. */
export type CheckNeeds = "node" | "allocation";

type Check = {
  hop: string;
  /** What a passed check shows, in a few words for lists. */
  proves: string;
  needs: CheckNeeds;
  /** How long it may take. */
  withinMs: number;
  /** It fails because of something else more often than not: the run goes on to find that. */
  symptom?: true;
  /** Where the cause of a symptom is looked for. */
  causeOfSymptom?: true;
};

export const preflightChecks = [
  {
    hop: "allocation_binding",
    proves: "Allocation is active on this node",
    needs: "allocation",
    withinMs: 5_000,
  },
  { hop: "node_heartbeat", proves: "Agent reports", needs: "node", withinMs: 5_000, symptom: true },
  {
    hop: "node_readiness",
    proves: "Disk, clock and diagnostic path are usable",
    needs: "node",
    withinMs: 12_000,
    causeOfSymptom: true,
  },
  {
    hop: "node_recovery_status",
    proves: "Identity accepted, service running",
    needs: "node",
    withinMs: 4_000,
    causeOfSymptom: true,
  },
  {
    hop: "node_runtime_api_reachability",
    proves: "Node reaches the API with its certificate",
    needs: "node",
    withinMs: 12_000,
    causeOfSymptom: true,
  },
  {
    hop: "node_task_round_trip",
    proves: "Task claimed, run and reported",
    needs: "node",
    withinMs: 8_000,
  },
  {
    hop: "terminal_token_mint",
    proves: "Terminal token issued",
    needs: "allocation",
    withinMs: 5_000,
  },
  {
    hop: "terminal_public_route",
    proves: "Gateway answers at its public address",
    needs: "allocation",
    withinMs: 4_000,
  },
  {
    hop: "browser_terminal_ws",
    proves: "Gateway accepts the WebSocket",
    needs: "allocation",
    withinMs: 6_000,
  },
  {
    hop: "terminal_open_task",
    proves: "Node takes the task terminal.open",
    needs: "allocation",
    withinMs: 17_000,
    symptom: true,
  },
  {
    hop: "node_terminal_reachability",
    proves: "Node reaches the terminal listener with its certificate",
    needs: "node",
    withinMs: 12_000,
    causeOfSymptom: true,
  },
  {
    hop: "gateway_node_stream",
    proves: "Gateway received the node's stream",
    needs: "allocation",
    withinMs: 17_000,
  },
  {
    hop: "terminal_ready_frame",
    proves: "Client received a ready or error frame",
    needs: "allocation",
    withinMs: 17_000,
  },
  {
    hop: "workload_terminal_startup_failure",
    proves: "Shell starts as the allocation's user",
    needs: "allocation",
    withinMs: 17_000,
  },
] as const satisfies readonly Check[];

export type PreflightHop = (typeof preflightChecks)[number]["hop"];
export const preflightHops = preflightChecks.map(({ hop }) => hop) as [PreflightHop, ...PreflightHop[]];

const checksByHop = new Map<string, Check>(preflightChecks.map((check) => [check.hop, check]));

export function checkOf(hop: PreflightHop): Check {
  return checksByHop.get(hop) as Check;
}

/** A whole run, whatever each check takes: with the time before and after it, less than a minute. */
export const PREFLIGHT_WITHIN_MS = 45_000;

/** Where a check was made from: that decides what it proves. */
export const preflightVantages = ["control_plane", "command_line", "node", "gateway"] as const;
export type PreflightVantage = (typeof preflightVantages)[number];

/** Why a check was not made. */
export const preflightOmissions = ["after_failure", "not_requested", "no_evidence", "no_time"] as const;
export type PreflightOmission = (typeof preflightOmissions)[number];
