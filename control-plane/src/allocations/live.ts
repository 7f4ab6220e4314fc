// Live topics of allocations, for open pages, and the part of a row that decides who may see it.

import type { Fragment, Sql } from "../database/connect.ts";
import type { LiveTopic } from "../live/topic.ts";

export const allocationTopic = {
  topic: "allocation",
  scope: "allocations:read",
  signal: "allocation",
  select: (system, ids) => system`
    SELECT a.id, a.org_id, a.node_id, ${allocationWithGrants(system)}, NULL AS user_key, now() AS read_at
    FROM allocations a WHERE a.id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;

/** From the row `a` of allocations, which may be empty after an outer join. */
export function allocationWithGrants(system: Sql): Fragment {
  return system`
    CASE WHEN a.id IS NOT NULL THEN json_build_object(
      'owner_user_id', a.owner_user_id, 'owner_token_id', a.owner_token_id,
      'grants', (
        SELECT coalesce(json_agg(json_build_object(
          'grantee_id', g.grantee_id, 'level', g.level, 'expires_at', g.expires_at)), '[]')
        FROM allocation_grants g WHERE g.allocation_id = a.id)) END AS allocation`;
}
