// Heartbeats whose evidence is stored: a classification skips nodes of which something is being written.

import { vi } from "vitest";
import type { Sql } from "../../control-plane/src/database/connect.ts";
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
    { timeout: 20_000, interval: 10 },
  );
}
