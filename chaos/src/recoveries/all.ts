// Every recovery, by the control plane that it happens at. Those of one track follow each other on one node.

import { movableClock } from "../faults/host.ts";
import { bundleForMissingToken, bundleForStaleTrust, bundleTooLate } from "./bundles.ts";
import { cloneBeforeRenewal, coldClone, warmClone } from "./clones.ts";
import { publicEdge, rateLimited } from "./edges.ts";
import { clockAhead, clockBehind, diskFullDuringRecovery, keyDeleted, staleTrust } from "./host.ts";
import type { Stage } from "./recovery.ts";
import { caLost, endpointDrift, ingressCaSwapped, outage, quarantined, revoked } from "./standing.ts";
import { followsLapses } from "./time.ts";

export const stages: readonly Stage[] = [
  {
    name: "ordinary",
    // The first node has a small disk and a clock of its own; the second one is as all others are.
    open: { second: true, stateMegabytes: 24, agentEnv: movableClock },
    tracks: [
      { node: "node", recoveries: [keyDeleted, diskFullDuringRecovery, clockAhead, clockBehind, quarantined] },
      {
        node: "second",
        recoveries: [
          bundleForMissingToken,
          staleTrust,
          bundleForStaleTrust,
          revoked,
          endpointDrift,
          coldClone,
          warmClone,
        ],
      },
    ],
    last: [caLost],
  },
  {
    name: "moved clock",
    open: { second: true, clock: true },
    tracks: [{ node: "node", recoveries: [outage, bundleTooLate, cloneBeforeRenewal] }],
  },
  {
    name: "nginx",
    open: { nginx: true, clock: true },
    tracks: [{ node: "node", recoveries: [ingressCaSwapped] }],
  },
  {
    name: "edge",
    open: { edge: true, clock: true, agentEnv: followsLapses, apiEnv: followsLapses },
    tracks: [{ node: "node", recoveries: [rateLimited, publicEdge] }],
  },
];

export const allRecoveries = stages.flatMap(({ tracks, last = [] }) => [
  ...tracks.flatMap(({ recoveries }) => recoveries),
  ...last,
]);
