// What open pages follow about agents that run steps.

import type { LiveTopic } from "../live/topic.ts";

export const agentTopic = {
  topic: "agent",
  scope: "agents:read",
  signal: "agent",
  select: (system, ids) => system`
    SELECT id, org_id, NULL::uuid AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM execution_agents WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
