// Chooses the agent of a request, and says for each other agent why it was not chosen. Pure: it knows agents as they were
// read; the statement that assigns checks the choice again.

import type { ExecutionKind } from "@holdfast/contracts/execution/frames";
import type { NotChosen } from "@holdfast/contracts/internal/executions";
import type { Selection } from "./settings.ts";

export type Candidate = {
  id: string;
  name: string;
  /** Null: not connected. */
  sessionId: string | null;
  gatewayId: string | null;
  /** Of that connection; null: the agent names none. */
  journalId: string | null;
  /** 0: an agent of another system. */
  protocolVersion: number;
  draining: boolean;
  kinds: readonly string[];
  /** Null: not limited to some. */
  connectors: readonly string[] | null;
  tags: readonly string[];
  maxInFlight: number;
  inFlight: number;
  /** Of the last request that it was given; 0: never. */
  lastDispatchedAt: number;
};

export type Wanted = {
  kind: ExecutionKind;
  connector: string | null;
  selectorAgentId: string | null;
  selectorTag: string | null;
  /** The agents that said they did not start it. */
  declinedBy: readonly string[];
};

type Reason = NotChosen["reason"];

/** What does not change by waiting comes first. Undefined: it can take the request. */
export function whyNot(agent: Candidate, wanted: Wanted): Reason | undefined {
  if (wanted.selectorAgentId !== null && agent.id !== wanted.selectorAgentId) return "other_agent";
  if (wanted.selectorTag !== null && !agent.tags.includes(wanted.selectorTag)) return "tag_missing";
  if (!agent.kinds.includes(wanted.kind)) return "kind_missing";
  if (wanted.connector !== null && agent.connectors?.includes(wanted.connector) === false)
    return "connector_missing";
  if (wanted.declinedBy.includes(agent.id)) return "declined";
  if (agent.sessionId === null) return "offline";
  if (agent.draining) return "draining";
  if (agent.inFlight >= agent.maxInFlight) return "full";
  return undefined;
}

/** Undefined: none of them can take it. */
export function chooseAgent<C extends Candidate>(
  agents: Iterable<C>,
  wanted: Wanted,
  selection: Selection,
): C | undefined {
  let best: C | undefined;
  for (const agent of agents) {
    if (whyNot(agent, wanted) !== undefined) continue;
    if (best === undefined || compare[selection](agent, best) < 0) best = agent;
  }
  return best;
}

const leastRecent = (a: Candidate, b: Candidate) =>
  a.lastDispatchedAt - b.lastDispatchedAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

const compare: Record<Selection, (a: Candidate, b: Candidate) => number> = {
  least_in_flight_lru: (a, b) => a.inFlight - b.inFlight || leastRecent(a, b),
  // The next in turn is the one whose last turn is the longest ago: so replicas agree on the order.
  round_robin: leastRecent,
};

/** So that a response stays small in an organization with thousands of agents. */
const MOST_EXPLAINED = 100;

/** For a request that no agent could take. */
export function explainNotChosen(agents: Iterable<Candidate>, wanted: Wanted): NotChosen[] {
  const reasons: NotChosen[] = [];
  for (const agent of agents) {
    const reason = whyNot(agent, wanted);
    if (reason === undefined) continue;
    reasons.push({ agent_id: agent.id, name: agent.name, reason, message: messages[reason](agent, wanted) });
    if (reasons.length === MOST_EXPLAINED) break;
  }
  return reasons;
}

const messages: Record<Reason, (agent: Candidate, wanted: Wanted) => string> = {
  other_agent: () => "The request names another agent.",
  tag_missing: ({ tags }, { selectorTag }) =>
    `It does not have the tag ${selectorTag}. Its tags: ${listed(tags)}.`,
  kind_missing: ({ kinds }, { kind }) => `It does not run ${kind}. It runs: ${listed(kinds)}.`,
  connector_missing: ({ connectors }, { connector }) =>
    `It does not have the connector ${connector}. Its connectors: ${listed(connectors ?? [])}.`,
  declined: () => "It declined this request.",
  offline: () => "It is not connected. Check the agent on its host.",
  draining: () => "It is draining and takes no new work.",
  full: ({ inFlight, maxInFlight }) => `It has ${inFlight} requests in flight, of at most ${maxInFlight}.`,
};

function listed(values: readonly string[]): string {
  if (values.length === 0) return "none";
  const first = values.slice(0, 10).join(", ");
  return values.length > 10 ? `${first}, …` : first;
}
