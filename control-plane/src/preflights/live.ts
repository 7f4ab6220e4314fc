// What open pages follow about preflights.

import type { LiveTopic } from "../live/topic.ts";

export const preflightTopic = {
  topic: "preflight",
  scope: "nodes:diagnose",
  signal: "preflight",
  select: (system, ids) => system`
    SELECT id, org_id, node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM preflights WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
