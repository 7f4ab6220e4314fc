// Settings of incidents.

import { integer, setting } from "@holdfast/kit/settings";
import { nodeWorkerSettings } from "../nodes/settings.ts";

export const driftWorkerSettings = {
  ...nodeWorkerSettings,
  incidentRetentionDays: setting(integer({ min: 1, max: 3650 }), {
    env: "HOLDFAST_INCIDENT_RETENTION_DAYS",
    default: 90,
    help: "Days after which incidents that are over, and notifications of allocations, are removed.",
  }),
};
