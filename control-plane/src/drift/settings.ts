// Settings of drift: the limits that a classification uses, and how long incidents are kept.

import { integer, setting } from "@holdfast/kit/settings";
import { nodeWorkerSettings } from "../nodes/settings.ts";

/** The api classifies the node that somebody looks at, the worker all of them: by the same limits. */
export const policySettings = {
  ...nodeWorkerSettings,
  nodeDiskPressurePercent: setting(integer({ min: 1, max: 97 }), {
    env: "HOLDFAST_NODE_DISK_PRESSURE_PERCENT",
    default: 90,
    help: "Percentage of a host's root file system from which it counts as almost full.",
  }),
};

export const driftWorkerSettings = {
  ...policySettings,
  incidentRetentionDays: setting(integer({ min: 1, max: 3650 }), {
    env: "HOLDFAST_INCIDENT_RETENTION_DAYS",
    default: 90,
    help: "Days after which incidents that are over, notifications of allocations, and messages to receivers are removed.",
  }),
};
