// Live topics of terminals, for open pages.

import { allocationWithGrants } from "../allocations/live.ts";
import type { LiveTopic } from "../live/topic.ts";

export const terminalTopic = {
  topic: "terminal",
  scope: "allocations:read",
  signal: "terminal",
  select: (system, ids) => system`
    SELECT s.id, s.org_id, s.node_id, ${allocationWithGrants(system)}, s.user_key, now() AS read_at
    FROM terminal_sessions s LEFT JOIN allocations a ON a.id = s.allocation_id WHERE s.id = ANY(${ids}::uuid[])`,
} satisfies LiveTopic;
