// Live topics of tasks, for open pages: all but routine tasks, which no list contains.

import { allocationWithGrants } from "../allocations/live.ts";
import type { LiveTopic } from "../live/topic.ts";

export const taskTopic = {
  topic: "task",
  scope: "tasks:read",
  signal: "task",
  select: (system, ids) => system`
    SELECT t.id, t.org_id, t.node_id, ${allocationWithGrants(system)}, NULL AS user_key, now() AS read_at
    FROM tasks t LEFT JOIN allocations a ON a.id = t.allocation_id
    WHERE t.id = ANY(${ids}::uuid[]) AND NOT t.routine`,
} satisfies LiveTopic;
