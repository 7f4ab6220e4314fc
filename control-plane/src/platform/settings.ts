// Settings of the installation's own upkeep.

import { integer, setting } from "@holdfast/kit/settings";

export const platformWorkerSettings = {
  sweepIntervalSeconds: setting(integer({ min: 1, max: 86_400 }), {
    env: "HOLDFAST_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "Interval at which expired sessions, links, idempotency keys and rate-limit windows are removed.",
  }),
};
