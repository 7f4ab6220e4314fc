// Places requests that wait: when an agent has room again, connects or changes, when requests come, and every second in case
// a signal was lost.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Candidates } from "./candidates.ts";
import { type Candidate, chooseAgent, type Wanted, whyNot } from "./choose.ts";
import { type SignExecution, signFor } from "./offers.ts";
import { selectWaiting, selectWaitingById, selectWaitingOrgs, type WaitingRow, wantedOf } from "./queries.ts";
import type { Selection } from "./settings.ts";
import { type Placed, type Placement, placeRequests } from "./transitions/place.ts";

export type Placing = {
  /** These requests, and older ones before them. Returns those that were given to an agent. */
  place(ids: readonly string[]): Promise<Map<string, Placed>>;
  /** The oldest of all organizations that have some. Returns how many were placed. */
  placeAll(): Promise<number>;
  /** An agent of the organization may have room. Does nothing if nothing waited there a moment ago. */
  roomIn(orgId: string): void;
  /** Requests of the organization wait. */
  waitsIn(orgId: string): void;
  /** Whether the agent could run a request that waits, as far as this process knows: it goes first. */
  isWanted(orgId: string, agent: Candidate): boolean;
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
  /** By organization: what requests wait for that could not be placed. */
  const waiting = new Map<string, Wanted[]>();
  const running = new Map<string, Promise<unknown>>();
  const again = new Set<string>();

  const choose = (rows: readonly WaitingRow[], agents: Candidate[]) =>
    rows.flatMap((row, index): Placement[] => {
      const agent = chooseAgent(agents, wantedOf(row), selection);
      if (!agent || agent.sessionId === null) return [];
      agent.inFlight += 1;
      // Distinct, so that requests of one moment go to agents in turn.
      agent.lastDispatchedAt = Date.now() + index / 1000;
      const deadlineAt = new Date(Date.now() + row.timeout_ms);
      const signature = agent.protocolVersion > 0 ? signFor(sign, row, { agentId: agent.id, deadlineAt }) : null;
      return [{ id: row.id, agentId: agent.id, sessionId: agent.sessionId, signature, deadlineAt }];
    });

  const placeRows = async (orgId: string, rows: readonly WaitingRow[]): Promise<Placed[]> => {
    const placements = rows.length === 0 ? [] : choose(rows, await candidates.now(orgId));
    const placed = placements.length === 0 ? [] : await placeRequests(sql, placements, { sessionSeconds });
    const done = new Set(placed.map(({ id }) => id));
    const left = rows.filter(({ id }) => !done.has(id));
    if (left.length > 0) waiting.set(orgId, left.map(wantedOf));
    else waiting.delete(orgId);
    for (const { agent_id } of placed) candidates.count(agent_id, 1);
    if (placed.length > 0) options.onPlaced(placed);
    return placed;
  };

  const placeIn = async (orgId: string): Promise<number> =>
    (await placeRows(orgId, await selectWaiting(sql, orgId, MOST_IN_ONE))).length;

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
        const older = waiting.has(orgId) ? await selectWaiting(sql, orgId, MOST_IN_ONE) : [];
        const all = new Map([...older, ...its].map((row) => [row.id, row]));
        placed.push(...(await placeRows(orgId, [...all.values()])));
      }
      return new Map(placed.map((one) => [one.id, one]));
    },
    async placeAll() {
      let placed = 0;
      const orgIds = await selectWaitingOrgs(sql);
      for (const orgId of waiting.keys()) if (!orgIds.includes(orgId)) waiting.delete(orgId);
      for (const orgId of orgIds) placed += await placeIn(orgId);
      return placed;
    },
    roomIn(orgId) {
      if (waiting.has(orgId)) placeSoon(orgId);
    },
    waitsIn(orgId) {
      if (!waiting.has(orgId)) waiting.set(orgId, []);
    },
    isWanted: (orgId, agent) =>
      waiting.get(orgId)?.some((wanted) => whyNot({ ...agent, inFlight: 0 }, wanted) === undefined) ?? false,
    async settled() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
