// From signals, which carry bare ids of all tenants, to what each listener may learn: rows of its organization, and
// of these only what belongs to no allocation or to one it reaches. Several signals within a moment become one look
// at the database.

import type { GrantLevel } from "@holdfast/contracts/endpoints/allocations";
import type { LiveMessage } from "@holdfast/contracts/live";
import { accessTo, type Caller, type Owner } from "../allocations/access.ts";
import type { Sql } from "../database/connect.ts";
import type { Signals, Topic } from "../signals/signals.ts";

const GATHER_MS = 100;
/** A page shows no more; whoever missed some reads everything again. */
const MOST_IDS = 500;

export type Changed = Exclude<LiveMessage["topic"], "fleet">;
const topicOf: Partial<Record<Topic, Changed>> = {
  node_standing: "node",
  task: "task",
  allocation: "allocation",
  terminal: "terminal",
};

/** Calls back once per organization and topic. Looks only while somebody listens. */
export function gatherChanges(options: {
  signals: Signals;
  system: Sql;
  listening: () => boolean;
  publish: (orgId: string, topic: Changed, rows: readonly ChangedRow[]) => void;
  onFailed: (error: unknown) => void;
}): { stop(): void } {
  const { signals, system, listening, publish, onFailed } = options;
  const waiting = new Map<Changed, Set<string>>();
  let timer: NodeJS.Timeout | undefined;

  const flush = async () => {
    timer = undefined;
    const all = [...waiting];
    waiting.clear();
    for (const [topic, ids] of all) {
      const rows = await selectChanged(system, topic, [...ids].slice(0, MOST_IDS));
      for (const [orgId, own] of Map.groupBy(rows, (row) => row.org_id)) publish(orgId, topic, own);
    }
  };

  const ends = Object.entries(topicOf).map(([signal, topic]) =>
    signals.subscribe(signal as Topic, (ids) => {
      if (!listening()) return;
      const set = waiting.get(topic) ?? new Set();
      waiting.set(topic, set);
      for (const id of ids) set.add(id);
      timer ??= setTimeout(() => void flush().catch(onFailed), GATHER_MS);
    }),
  );
  return {
    stop() {
      clearTimeout(timer);
      for (const end of ends) end();
    },
  };
}

/** With what decides who may learn of it. */
export type ChangedRow = {
  id: string;
  org_id: string;
  node_id: string;
  /** Null: of no allocation, for everybody in the organization. */
  allocation: (Owner & { grants: { grantee_id: string; level: GrantLevel; expires_at: string }[] }) | null;
  /** Who opened it, of a terminal. */
  user_key: string | null;
  read_at: Date;
};

export type Viewer = { caller: Caller; userKey: string };

export function messageFor(viewer: Viewer, topic: Changed, rows: readonly ChangedRow[]): LiveMessage | undefined {
  const seen = rows.filter((row) => isSeenBy(viewer, row));
  if (seen.length === 0) return undefined;
  const node_ids = [...new Set(seen.map((row) => row.node_id))];
  return { type: "changed", topic, ids: seen.map((row) => row.id), node_ids };
}

function isSeenBy({ caller, userKey }: Viewer, { allocation, user_key, read_at }: ChangedRow): boolean {
  if (allocation === null) return true;
  const own = allocation.grants.find(({ grantee_id }) => grantee_id === caller.userId);
  const grant = own ? { level: own.level, expires_at: new Date(own.expires_at) } : null;
  const access = accessTo(caller, { ...allocation, grant }, read_at);
  // As in lists: of an allocation that one does not manage, only one's own terminals.
  return access === "manage" || (access !== "none" && (user_key === null || user_key === userKey));
}

function selectChanged(system: Sql, topic: Changed, ids: string[]): Promise<ChangedRow[]> {
  switch (topic) {
    case "node":
      return system<ChangedRow[]>`
        SELECT id, org_id, id AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
        FROM nodes WHERE id = ANY(${ids}::uuid[])`;
    case "task":
      return system<ChangedRow[]>`
        SELECT t.id, t.org_id, t.node_id, ${allocationOf(system)}, NULL AS user_key, now() AS read_at
        FROM tasks t LEFT JOIN allocations a ON a.id = t.allocation_id
        WHERE t.id = ANY(${ids}::uuid[]) AND NOT t.routine`;
    case "allocation":
      return system<ChangedRow[]>`
        SELECT a.id, a.org_id, a.node_id, ${allocationOf(system)}, NULL AS user_key, now() AS read_at
        FROM allocations a WHERE a.id = ANY(${ids}::uuid[])`;
    case "terminal":
      return system<ChangedRow[]>`
        SELECT s.id, s.org_id, s.node_id, ${allocationOf(system)}, s.user_key, now() AS read_at
        FROM terminal_sessions s JOIN allocations a ON a.id = s.allocation_id WHERE s.id = ANY(${ids}::uuid[])`;
  }
}

const allocationOf = (system: Sql) => system`
  CASE WHEN a.id IS NOT NULL THEN json_build_object(
    'owner_user_id', a.owner_user_id, 'owner_token_id', a.owner_token_id,
    'grants', (
      SELECT coalesce(json_agg(json_build_object(
        'grantee_id', g.grantee_id, 'level', g.level, 'expires_at', g.expires_at)), '[]')
      FROM allocation_grants g WHERE g.allocation_id = a.id)) END AS allocation`;
