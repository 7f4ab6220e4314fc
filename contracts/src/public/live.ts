// What an open page follows: one WebSocket per tab says which things changed; the page reads them again through the API
// it always uses. Only ids of the organization are sent here.

import { z } from "zod";

/** Same origin as the page; the session cookie says who, the query `org_id` in which organization. */
export const LIVE_PATH = "/v1/live";

export const LiveMessage = z.strictObject({
  type: z.literal("changed"),
  /** Declared by the modules of the control plane: `node`, `task`, … A page ignores those it shows nothing of. */
  topic: z.string(),
  /** At most a few hundred; what a page does not show it ignores. None for the fleet, which changes as a whole. */
  ids: z.array(z.string()),
  /** The nodes that they belong to, for what belongs to one. */
  node_ids: z.array(z.string()),
});
export type LiveMessage = z.infer<typeof LiveMessage>;
