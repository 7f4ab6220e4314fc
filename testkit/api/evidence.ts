// Heartbeats whose evidence is stored: a classification skips nodes of which something is being written.

import { vi } from "vitest";
import type { Sql } from "../../control-plane/src/database/connect.ts";
import type { Policy } from "../../control-plane/src/drift/classify/derive.ts";
import { defaultPolicy } from "../../control-plane/src/drift/policy.ts";
import { type Classified, classifyDue } from "../../control-plane/src/drift/verdicts/classify-due.ts";
import { sendHeartbeatFrom, type TestNode } from "./nodes.ts";

/** A node's first heartbeat. `superuser`: of the api's database. */
export async function firstHeartbeat(superuser: Sql, node: TestNode): Promise<void> {
  await sendHeartbeatFrom(node);
  await evidenceStored(superuser, node);
}

/** Every first heartbeat has a version, which is stored last. */
async function evidenceStored(superuser: Sql, { id }: TestNode): Promise<void> {
  await vi.waitUntil(
    async () => {
      const rows = await superuser`
        SELECT FROM node_observations WHERE node_id = ${id} AND kind = 'agent_build'`;
      return rows.length > 0;
    },
    { timeout: 100_000, interval: 10 },
  );
}

/** As a worker does turn after turn: nodes of which something is being written have theirs in a later one. */
export async function classifyWhatIsDue(system: Sql, policy: Policy = defaultPolicy): Promise<Classified> {
  const all: Classified = { classified: 0, changed: [], allocations: [] };
  for (;;) {
    const { classified, changed, allocations } = await classifyDue(system, policy);
    all.classified += classified;
    all.changed.push(...changed);
    all.allocations.push(...allocations);
    const [due] = await system`SELECT FROM node_verdicts WHERE review_at <= now() LIMIT 1`;
    if (!due) return all;
  }
}
