// What open pages follow about leases.

import type { LiveTopic } from "../live/topic.ts";

export const leaseTopic = {
  topic: "lease",
  scope: "leases:read",
  signal: "lease",
  select: (system, ids) => system`
    SELECT id, org_id, NULL::uuid AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
    FROM vm_leases WHERE id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
