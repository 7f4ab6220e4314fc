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
  // Alone, so that the index answers it: at rest it finds nothing.
  const outdated = await system<{ node_id: string }[]>`
    SELECT DISTINCT node_id FROM node_observations
    WHERE kind = 'profile' AND replaced_at IS NULL AND (detail->>'profile_version')::integer < ${newest.version}
      AND (value = 'differs' OR (detail->>'profile_version')::integer < ${oldest.version})`;
  const changed: string[] = [];
  for (let from = 0; from < outdated.length; from += BATCH) {
    const ids = outdated.slice(from, from + BATCH).map(({ node_id }) => node_id);
    const rows = await system<Row[]>`
      SELECT node_id, heartbeat#>'{setup,urls}' AS urls FROM node_presence
      WHERE node_id = ANY(${ids}::uuid[]) AND heartbeat#>'{setup,urls}' IS NOT NULL`;
    const compared = rows.flatMap(({ node_id, urls }) =>
      compareWithProfile({ nodeId: node_id, urls, at: now }, accepted),
    );
    changed.push(...(await recordObservations(system, compared)));
  }
  return changed;
}
