// Every drill. Those of one lab follow each other in this order.

import type { Drill } from "../drill.ts";
import { agentStoppedDrill } from "./host.ts";
import { egressBlocked } from "./link.ts";
import {
  certificateStale,
  streamBlocked,
  streamDelayed,
  streamUnresolved,
  wrongHost,
  wrongPort,
} from "./node-stream.ts";
import { bindingLost, routeMispointed, routeRemoved, tokenNotForwarded, upgradeHeaders } from "./route.ts";
import { shellDelayed, shellMissing, userRemoved, userRenamed } from "./shell.ts";

export const allDrills: readonly Drill[] = [
  ...[streamBlocked, streamUnresolved, wrongPort, wrongHost, certificateStale],
  ...[streamDelayed, shellMissing, shellDelayed, userRemoved, userRenamed],
  ...[routeRemoved, routeMispointed, upgradeHeaders, tokenNotForwarded, bindingLost],
  ...[agentStoppedDrill, egressBlocked],
];
