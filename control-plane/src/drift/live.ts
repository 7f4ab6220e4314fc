// What open pages follow about causes: that the verdict on a node changed.

import type { LiveTopic } from "../live/topic.ts";

export const verdictTopic = {
  topic: "verdict",
  scope: "nodes:diagnose",
  signal: "verdict",
  select: (system, ids) => system`
    SELECT id, org_id, id AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM nodes WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
