// Settings about nodes that several processes have.

import { integer, setting } from "@holdfast/kit/settings";

export const staleAfterSetting = setting(integer({ min: 5, max: 86_400 }), {
  env: "HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS",
  default: 120,
  help: "Number of seconds without a heartbeat after which a node is offline.",
});
