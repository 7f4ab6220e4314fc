// Compares nodes again when another profile was published: those that used an address which is no longer published, and
// those that differed from what was published before. Idempotent; without a change it reads an index and nothing else.

import type { AgentSetup } from "@holdfast/contracts/node/protocol";
import type { Sql } from "../../database/connect.ts";
import { acceptable, readPublished } from "../../profiles/published.ts";
import { recordObservations } from "../evidence/write.ts";
import { compareWithProfile } from "./compare-profile.ts";

const BATCH = 500;
type Row = { node_id: string; urls: AgentSetup["urls"] };

/** Returns the ids of nodes whose evidence changed. */
export async function compareAllProfiles(system: Sql, now = new Date()): Promise<string[]> {
  const accepted = acceptable(await readPublished(system), now.getTime());
  const [newest, oldest] = [accepted.at(0), accepted.at(-1)];
  if (!newest || !oldest) return [];
  const changed: string[] = [];
  let after = "00000000-0000-0000-0000-000000000000";
  for (;;) {
    const rows = await system<Row[]>`
      SELECT p.node_id, p.heartbeat#>'{setup,urls}' AS urls FROM node_presence p
      WHERE p.node_id > ${after} AND p.heartbeat#>'{setup,urls}' IS NOT NULL AND p.node_id IN (
        SELECT node_id FROM node_observations
        WHERE kind = 'profile' AND replaced_at IS NULL AND (detail->>'profile_version')::integer < ${newest.version}
          AND (value = 'differs' OR (detail->>'profile_version')::integer < ${oldest.version}))
      ORDER BY p.node_id LIMIT ${BATCH}`;
    const compared = rows.flatMap(({ node_id, urls }) =>
      compareWithProfile({ nodeId: node_id, urls, at: now }, accepted),
    );
    changed.push(...(await recordObservations(system, compared)));
    const last = rows.at(-1);
    if (!last || rows.length < BATCH) return changed;
    after = last.node_id;
  }
}
