// What open pages follow about nodes.

import type { LiveTopic } from "../live/topic.ts";

export const nodeTopic = {
  topic: "node",
  scope: "nodes:read",
  signal: "node_standing",
  select: (system, ids) => system`
    SELECT id, org_id, id AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM nodes WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
