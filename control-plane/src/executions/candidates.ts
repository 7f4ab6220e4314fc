// The agents that can be chosen, as this process knows them. A view of an organization is read again after a second, and an
// agent when it is signalled; what this process gives and ends is counted at once. It may be behind: the statement that
// assigns checks again.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { Candidate } from "./choose.ts";
import { selectCandidates, selectCandidatesById, selectToExplain } from "./queries.ts";

export type Candidates = {
  /** Connected agents only. */
  of(orgId: string): Promise<Iterable<Candidate>>;
  /** The same, read now. */
  now(orgId: string): Promise<Candidate[]>;
  /** To explain why none of them was chosen. */
  toExplain(orgId: string): Promise<Candidate[]>;
  /** Read again what is chosen next: the view was behind. */
  forget(orgId: string): void;
  /** Requests that this process has given to the agent (positive), or that have ended. */
  count(agentId: string, difference: number): void;
  stop(): void;
};

const READ_AGAIN_MS = 1_000;
/** Of organizations. Beyond that, all are read again when they are needed. */
const MOST_VIEWS = 1_000;

type View = { readAt: number; agents: Map<string, Candidate> };

export function createCandidates(options: {
  sql: Sql;
  signals: Signals;
  sessionSeconds: number;
  log: Log;
}): Candidates {
  const { sql, signals, sessionSeconds } = options;
  const views = new Map<string, View>();
  const orgOf = new Map<string, string>();
  const reading = new Map<string, Promise<View>>();
  let changed = new Set<string>();
  let lastGivenAt = 0;

  const forgetAll = () => {
    views.clear();
    orgOf.clear();
  };

  const read = async (orgId: string): Promise<View> => {
    const readAt = performance.now();
    const rows = await selectCandidates(sql, orgId, { sessionSeconds });
    if (views.size > MOST_VIEWS) forgetAll();
    for (const id of views.get(orgId)?.agents.keys() ?? []) orgOf.delete(id);
    const view = { readAt, agents: new Map(rows.map((row) => [row.id, row])) };
    for (const { id } of rows) orgOf.set(id, orgId);
    views.set(orgId, view);
    return view;
  };

  const readOnce = (orgId: string): Promise<View> => {
    const known = reading.get(orgId) ?? read(orgId).finally(() => reading.delete(orgId));
    reading.set(orgId, known);
    return known;
  };

  const readChanged = async () => {
    const ids = [...changed];
    changed = new Set();
    const rows = new Map((await selectCandidatesById(sql, ids, { sessionSeconds })).map((row) => [row.id, row]));
    for (const id of ids) {
      const row = rows.get(id);
      const orgId = row?.orgId ?? orgOf.get(id);
      const agents = orgId === undefined ? undefined : views.get(orgId)?.agents;
      if (row && row.sessionId !== null && agents) {
        agents.set(id, row);
        orgOf.set(id, row.orgId);
      } else agents?.delete(id);
    }
  };

  const unsubscribe = [
    signals.subscribe("agent", (ids) => {
      if (views.size > 0) for (const id of ids) changed.add(id);
    }),
    signals.onReconnected(forgetAll),
  ];

  return {
    async of(orgId) {
      const known = views.get(orgId);
      if (!known || known.readAt < performance.now() - READ_AGAIN_MS)
        return (await readOnce(orgId)).agents.values();
      if (changed.size > 0) await readChanged();
      return (views.get(orgId) ?? known).agents.values();
    },
    now: (orgId) => selectCandidates(sql, orgId, { sessionSeconds }),
    toExplain: (orgId) => selectToExplain(sql, orgId, { sessionSeconds }),
    forget: (orgId) => views.delete(orgId),
    count(agentId, difference) {
      const agent = views.get(orgOf.get(agentId) ?? "")?.agents.get(agentId);
      if (!agent) return;
      agent.inFlight = Math.max(0, agent.inFlight + difference);
      // Distinct, so that requests of one moment go to agents in turn.
      if (difference > 0) lastGivenAt = agent.lastDispatchedAt = Math.max(Date.now(), lastGivenAt + 0.001);
    },
    stop() {
      for (const end of unsubscribe) end();
    },
  };
}
