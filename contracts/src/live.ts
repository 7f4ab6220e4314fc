// Live updates of an open page: one WebSocket per tab names what changed; the page reads
// them again through the API it always uses. Nothing but ids of the organization travels here.

import { z } from "zod";

/** Same origin as the page; the session cookie says who, the query `org_id` in which organization. */
export const LIVE_PATH = "/v1/live";

export const LiveMessage = z.strictObject({
  type: z.literal("changed"),
  topic: z.enum(["node", "task", "allocation", "terminal", "fleet"]),
  /** At most a few hundred; a page ignores what it does not show. None for the fleet, which is announced as a whole. */
  ids: z.array(z.string()),
  /** For tasks, allocations and terminals: the nodes they belong to. */
  node_ids: z.array(z.string()),
});
export type LiveMessage = z.infer<typeof LiveMessage>;
