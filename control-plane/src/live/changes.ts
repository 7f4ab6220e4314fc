// From signals, which carry bare ids of all tenants, to what each organization may hear. Several
// signals within a moment become one look at the database.

import type { LiveMessage } from "@holdfast/contracts/live";
import type { Sql } from "../database/connect.ts";
import type { Signals, Topic } from "../signals/signals.ts";

const GATHER_MS = 100;
/** A page shows no more; whoever missed some reads everything again. */
const MOST_IDS = 500;

type Changed = Exclude<LiveMessage["topic"], "fleet">;
const topicOf: Partial<Record<Topic, Changed>> = {
  node_standing: "node",
  task: "task",
  allocation: "allocation",
  terminal: "terminal",
};

/** Calls back with one message per organization and topic. Looks only while somebody listens. */
export function gatherChanges(options: {
  signals: Signals;
  system: Sql;
  listening: () => boolean;
  tell: (orgId: string, message: LiveMessage) => void;
  onFailed: (error: unknown) => void;
}): { stop(): void } {
  const { signals, system, listening, tell, onFailed } = options;
  const waiting = new Map<Changed, Set<string>>();
  let timer: NodeJS.Timeout | undefined;

  const flush = async () => {
    timer = undefined;
    const all = [...waiting];
    waiting.clear();
    for (const [topic, ids] of all) {
      const rows = await ownersOf(system, topic, [...ids].slice(0, MOST_IDS));
      const byOrg = Map.groupBy(rows, (row) => row.org_id);
      for (const [orgId, own] of byOrg) {
        const node_ids = [...new Set(own.map((row) => row.node_id))];
        tell(orgId, { type: "changed", topic, ids: own.map((row) => row.id), node_ids });
      }
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

type Owner = { id: string; org_id: string; node_id: string };

function ownersOf(system: Sql, topic: Changed, ids: string[]): Promise<Owner[]> {
  switch (topic) {
    case "node":
      return system<Owner[]>`SELECT id, org_id, id AS node_id FROM nodes WHERE id = ANY(${ids}::uuid[])`;
    case "task":
      return system<Owner[]>`
        SELECT id, org_id, node_id FROM tasks WHERE id = ANY(${ids}::uuid[]) AND NOT routine`;
    case "allocation":
      return system<Owner[]>`SELECT id, org_id, node_id FROM allocations WHERE id = ANY(${ids}::uuid[])`;
    case "terminal":
      return system<Owner[]>`SELECT id, org_id, node_id FROM terminal_sessions WHERE id = ANY(${ids}::uuid[])`;
  }
}
