// What open pages follow about the fleet: that it changed, as a whole.

import type { LiveTopic } from "../live/topic.ts";

export const fleetTopic = {
  topic: "fleet",
  scope: "nodes:read",
  subscribe: ({ fleets }, changed) => fleets.onChanged(changed),
} satisfies LiveTopic;
