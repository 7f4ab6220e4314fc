// Settings about nodes that several processes have.

import { integer, setting } from "@holdfast/kit/settings";

export const staleAfterSetting = setting(integer({ min: 5, max: 86_400 }), {
  env: "HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS",
  default: 120,
  help: "After how many seconds without a heartbeat a node is shown as stale.",
});
