// What open pages follow about executions.

import type { LiveTopic } from "../live/topic.ts";

export const executionTopic = {
  topic: "execution",
  scope: "executions:read",
  signal: "execution",
  select: (system, ids) => system`
    SELECT id, org_id, NULL::uuid AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM executions WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
