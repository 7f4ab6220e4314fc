// Every drill. Those of one lab follow each other in this order.

import type { Drill } from "../drill.ts";
import { agentStoppedDrill } from "./host.ts";
import { egressBlocked } from "./link.ts";
import { streamBlocked, streamDelayed, streamUnresolved, wrongHost, wrongPort } from "./node-stream.ts";
import { routeMispointed, routeRemoved, tokenNotForwarded, upgradeHeaders } from "./route.ts";
import { shellMissing, userRemoved, userRenamed } from "./shell.ts";

export const allDrills: readonly Drill[] = [
  ...[streamBlocked, streamUnresolved, wrongPort, wrongHost],
  ...[streamDelayed, shellMissing, userRemoved, userRenamed],
  ...[routeRemoved, routeMispointed, upgradeHeaders, tokenNotForwarded],
  ...[agentStoppedDrill, egressBlocked],
];
