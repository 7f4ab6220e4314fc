// Every scenario, those that take longest first: they run side by side.

import type { Drill } from "../runbook/drill.ts";
import { allDrills } from "../runbook/drills/all.ts";
import type { Run, Scenario } from "../scenario.ts";
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

/** Drills of one lab follow each other, which takes long. */
export const everything: (Scenario | Drill)[] = [...allDrills, ...allScenarios];

/** By its label. */
export function readRun(label: string): Run {
  const [name = "", ...options] = label.split(":");
  const scenario = everything.find((one) => one.name === name);
  if (!scenario) {
    const known = everything.map((one) => one.name).join(", ");
    throw new Error(`There is no scenario ${name}; there are: ${known}.`);
  }
  const unknown = options.find((one) => one !== "poll" && one !== "falsify");
  if (unknown !== undefined) throw new Error(`${label} ends in ${unknown}; that can be poll or falsify.`);
  return { scenario, link: options.includes("poll") ? "poll" : "stream", falsify: options.includes("falsify") };
}
