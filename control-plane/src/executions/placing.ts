// Places requests that wait: when an agent has room again, connects or changes, when requests come, and every second in case
// a signal was lost.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Candidates } from "./candidates.ts";
import { type Candidate, chooseAgent } from "./choose.ts";
import { type SignExecution, signFor } from "./offers.ts";
import { selectWaiting, selectWaitingById, selectWaitingOrgs, type WaitingRow, wantedOf } from "./queries.ts";
import type { Selection } from "./settings.ts";
import { type Placed, type Placement, placeRequests } from "./transitions/place.ts";

export type Placing = {
  /** These requests. Returns those that were given to an agent. */
  place(ids: readonly string[]): Promise<Map<string, Placed>>;
  /** The oldest of all organizations that have some. Returns how many were placed. */
  placeAll(): Promise<number>;
  /** An agent of the organization may have room. Does nothing if nothing waited there a moment ago. */
  roomIn(orgId: string): void;
  /** Requests of the organization wait. */
  waitsIn(orgId: string): void;
  settled(): Promise<void>;
};

const MOST_IN_ONE = 200;

export function createPlacing(options: {
  sql: Sql;
  candidates: Candidates;
  sign: SignExecution;
  selection: Selection;
  sessionSeconds: number;
  log: Log;
  /** Requests that were given to agents. */
  onPlaced(placed: readonly Placed[]): void;
}): Placing {
  const { sql, candidates, sign, selection, sessionSeconds, log } = options;
  const waiting = new Set<string>();
  const running = new Map<string, Promise<unknown>>();
  const again = new Set<string>();

  const choose = (rows: readonly WaitingRow[], agents: Candidate[]) =>
    rows.flatMap((row): Placement[] => {
      const agent = chooseAgent(agents, wantedOf(row), selection);
      if (!agent || agent.sessionId === null) return [];
      agent.inFlight += 1;
      agent.lastDispatchedAt = Date.now();
      const deadlineAt = new Date(Date.now() + row.timeout_ms);
      const signature = agent.protocolVersion > 0 ? signFor(sign, row, { agentId: agent.id, deadlineAt }) : null;
      return [{ id: row.id, agentId: agent.id, sessionId: agent.sessionId, signature, deadlineAt }];
    });

  const placeRows = async (orgId: string, rows: readonly WaitingRow[]): Promise<Placed[]> => {
    const placements = rows.length === 0 ? [] : choose(rows, await candidates.all(orgId));
    if (placements.length === 0) return [];
    const placed = await placeRequests(sql, placements, { sessionSeconds });
    for (const { agent_id } of placed) candidates.count(agent_id, 1);
    if (placed.length > 0) options.onPlaced(placed);
    return placed;
  };

  const placeIn = async (orgId: string): Promise<number> => {
    const rows = await selectWaiting(sql, orgId, MOST_IN_ONE);
    if (rows.length === 0) waiting.delete(orgId);
    return (await placeRows(orgId, rows)).length;
  };

  /** One at a time for each organization, and one more if there was room meanwhile. */
  const placeSoon = (orgId: string): void => {
    if (running.has(orgId)) {
      again.add(orgId);
      return;
    }
    const work = placeIn(orgId)
      .catch((error: unknown) => log.warn({ err: error }, "could not place waiting requests"))
      .finally(() => {
        running.delete(orgId);
        if (again.delete(orgId)) placeSoon(orgId);
      });
    running.set(orgId, work);
  };

  return {
    async place(ids) {
      const rows = await selectWaitingById(sql, ids);
      const placed: Placed[] = [];
      for (const [orgId, its] of Map.groupBy(rows, (row) => row.org_id)) {
        waiting.add(orgId);
        placed.push(...(await placeRows(orgId, its)));
      }
      return new Map(placed.map((one) => [one.id, one]));
    },
    async placeAll() {
      let placed = 0;
      const orgIds = await selectWaitingOrgs(sql);
      waiting.clear();
      for (const orgId of orgIds) {
        waiting.add(orgId);
        placed += await placeIn(orgId);
      }
      return placed;
    },
    roomIn(orgId) {
      if (waiting.has(orgId)) placeSoon(orgId);
    },
    waitsIn: (orgId) => void waiting.add(orgId),
    async settled() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
