// Settings of executions, and the times that are not settings.

import { integer, oneOf, setting } from "@holdfast/kit/settings";
import { retentionSetting } from "../tasks/settings.ts";

/** Renewed by the agent at a quarter of it. That one lapsed changes nothing: the deadline of the request decides. */
export const EXECUTION_LEASE_SECONDS = 60;

export const selections = ["least_in_flight_lru", "round_robin"] as const;
export type Selection = (typeof selections)[number];

export const executionSettings = {
  agentSelection: setting<Selection>(oneOf(...selections), {
    env: "HOLDFAST_AGENT_SELECTION",
    aliases: ["GATEWAY_AGENT_SELECTION"],
    default: "least_in_flight_lru",
    help: "How the agent of a step is chosen among those that can run it: the one with the fewest in flight and of these the one that was unused for the longest time, or each in turn.",
  }),
};

export const executionWorkerSettings = {
  executionResultsTtlSeconds: setting(integer({ min: 1, max: 2_592_000 }), {
    env: "HOLDFAST_EXECUTION_RESULTS_TTL_SECONDS",
    aliases: ["GATEWAY_RESULTS_TTL_SEC"],
    default: 900,
    help: "Number of seconds after which the result of a step, its payload and what it printed are erased. Its history stays.",
  }),
  taskRetentionDays: retentionSetting,
};
