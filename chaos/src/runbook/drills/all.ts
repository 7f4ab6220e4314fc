// Every drill. Those of one lab follow each other in this order.

import type { Drill } from "../drill.ts";
import { diskFilled, logsFillDisk } from "./disk.ts";
import { agentStoppedDrill, incompatibleBuild, restartBlockedDrill } from "./host.ts";
import { agentCertificateStale, certificateRotated, publicEdge } from "./identity.ts";
import { egressBlocked, nameRemoved, trustStale } from "./link.ts";
import {
  certificateStale,
  certificateUntrusted,
  streamBlocked,
  streamDelayed,
  streamUnresolved,
  wrongHost,
  wrongPort,
} from "./node-stream.ts";
import { bindingLost, routeMispointed, routeRemoved, tokenNotForwarded, upgradeHeaders } from "./route.ts";
import { shellDelayed, shellMissing, userRemoved, userRenamed } from "./shell.ts";
import { resultEgressBlocked, resultPathBlocked } from "./work.ts";

export const allDrills: readonly Drill[] = [
  ...[streamBlocked, streamUnresolved, wrongPort, wrongHost, certificateUntrusted, certificateStale],
  ...[streamDelayed, shellMissing, shellDelayed, userRemoved, userRenamed],
  ...[routeRemoved, routeMispointed, upgradeHeaders, tokenNotForwarded, bindingLost],
  ...[agentStoppedDrill, restartBlockedDrill, egressBlocked, nameRemoved, resultEgressBlocked],
  ...[certificateRotated, agentCertificateStale, trustStale, incompatibleBuild],
  ...[publicEdge, resultPathBlocked, logsFillDisk, diskFilled],
];
