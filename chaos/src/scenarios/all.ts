// Every scenario, those that take longest first: they run side by side.

import type { Scenario } from "../scenario.ts";
import { incompatible, outdated, stopped } from "./agent.ts";
import { apiKilled } from "./api-killed.ts";
import { rateLimited, resultRefused } from "./edge.ts";
import { clockAhead, clockBehind, fullDisk, staleTrust } from "./host.ts";
import { rejected as certificateRejected, rotated } from "./identity.ts";
import {
  dropped,
  halfOpen,
  lossAndDelay,
  nameRefusedStory,
  nameSilent,
  nameWrong,
  oneWay,
  rejected,
} from "./network.ts";
import { databaseRestarted, resultBlocked } from "./work.ts";

export const allScenarios: Scenario[] = [
  apiKilled,
  lossAndDelay,
  rateLimited,
  dropped,
  oneWay,
  nameSilent,
  nameRefusedStory,
  nameWrong,
  halfOpen,
  databaseRestarted,
  certificateRejected,
  staleTrust,
  incompatible,
  outdated,
  rejected,
  clockAhead,
  clockBehind,
  resultBlocked,
  resultRefused,
  rotated,
  fullDisk,
  stopped,
];
