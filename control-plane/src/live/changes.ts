// From signals, which carry bare ids of all tenants, to what each viewer may see: rows of its organization, and of these
// only what belongs to no allocation or to one it has access to. Many signals within a moment become two queries.

import type { LiveMessage } from "@holdfast/contracts/public/live";
import { accessTo, type Caller } from "../allocations/access.ts";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { ChangedRow, SignalledTopic } from "./topic.ts";

/** The first change is published at once; those within this time after it are published together. */
const GATHER_MS = 100;
/** A page shows no more; whoever missed some reads everything again. */
const MOST_IDS = 500;

/** Calls back once per organization and topic. Queries only while somebody follows. */
export function gatherChanges(options: {
  topics: readonly SignalledTopic[];
  signals: Signals;
  system: Sql;
  listening: () => boolean;
  publish: (orgId: string, topic: string, rows: readonly ChangedRow[]) => void;
  onFailed: (error: unknown) => void;
}): { stop(): void } {
  const { topics, signals, system, listening, publish, onFailed } = options;
  const waiting = new Map<SignalledTopic, Set<string>>();
  let timer: NodeJS.Timeout | undefined;
  let quietUntil = 0;

  const flush = async () => {
    timer = undefined;
    quietUntil = performance.now() + GATHER_MS;
    const all = [...waiting];
    waiting.clear();
    for (const [{ topic, select }, ids] of all) {
      const rows = await select(system, [...ids].slice(0, MOST_IDS));
      for (const [orgId, own] of Map.groupBy(rows, (row) => row.org_id)) publish(orgId, topic, own);
    }
  };

  const ends = topics.map((topic) =>
    signals.subscribe(topic.signal, (ids) => {
      if (!listening()) return;
      const set = waiting.get(topic) ?? new Set();
      waiting.set(topic, set);
      for (const id of ids) set.add(id);
      timer ??= setTimeout(() => void flush().catch(onFailed), Math.max(0, quietUntil - performance.now()));
    }),
  );
  return {
    stop() {
      clearTimeout(timer);
      for (const end of ends) end();
    },
  };
}

export type Viewer = { caller: Caller; userKey: string };

export function messageFor(viewer: Viewer, topic: string, rows: readonly ChangedRow[]): LiveMessage | undefined {
  const seen = rows.filter((row) => isSeenBy(viewer, row));
  if (seen.length === 0) return undefined;
  const node_ids = [...new Set(seen.flatMap((row) => row.node_id ?? []))];
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
