// What open pages follow about Jenkins controllers.

import type { LiveTopic } from "../live/topic.ts";

export const jenkinsTopic = {
  topic: "jenkins",
  scope: "leases:read",
  signal: "jenkins",
  select: (system, ids) => system`
    SELECT id, org_id, NULL::uuid AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM jenkins_controllers WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
