// Leases: requests for VMs, the hosts that they are placed on, and the images that they start from.

import { defineModule } from "../module.ts";
import { nodeApiSettings } from "../nodes/settings.ts";
import { leaseTopic } from "./live.ts";
import { leaseSettings, leaseWorkerSettings } from "./settings.ts";
import { ADVANCE_LEASES } from "./watch.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of leases. */
    lease: true;
  }
}

const { nodeHeartbeatStaleSeconds } = nodeApiSettings;

export const leases = defineModule({
  name: "leases",
  apiSettings: { ...leaseSettings, nodeHeartbeatStaleSeconds },
  workerSettings: leaseWorkerSettings,
  publicRoutes: async (api) => {
    (await import("./routes.ts")).leaseRoutes(api);
    (await import("./host-routes.ts")).hostRoutes(api);
    (await import("./image-routes.ts")).imageRoutes(api);
  },
  nodeRoutes: async (nodeApi, api) => (await import("./node-routes.ts")).leaseNodeRoutes(nodeApi, api),
  liveTopics: [leaseTopic],
  jobs: [
    {
      name: ADVANCE_LEASES,
      every: 1,
      // A host takes work again, or was retired.
      wakeOn: ["node_standing"],
      runsIn: "each api",
      run: async ({ system, tasks, leases, settings, log }) => {
        const { advanceLeases } = await import("./advance.ts");
        return advanceLeases({
          ...{ system, tasks, log, onMoved: leases.changed },
          policy: { ...leases.policy(), staleAfterSeconds: settings.nodeHeartbeatStaleSeconds },
        });
      },
    },
    {
      name: "take-vm-inventories",
      every: 5,
      runsIn: "each api",
      run: async ({ system, tasks, settings, log }) => {
        const { discoverHosts } = await import("./hosts-view.ts");
        const found = await discoverHosts(system);
        const { takeInventories } = await import("./inventory.ts");
        const staleAfterSeconds = settings.nodeHeartbeatStaleSeconds;
        return { found, ...(await takeInventories({ system, tasks, log, staleAfterSeconds })) };
      },
    },
    {
      name: "keep-vm-images",
      every: 5,
      runsIn: "each api",
      run: async ({ system, tasks, settings, log }) => {
        const { keepImages } = await import("./image-orders.ts");
        return keepImages({ system, tasks, log, staleAfterSeconds: settings.nodeHeartbeatStaleSeconds });
      },
    },
    {
      name: "recount-vm-hosts",
      every: 60,
      runsIn: "one worker",
      run: async ({ system, log }) => (await import("./upkeep.ts")).recountHosts(system, log),
    },
    {
      name: "remove-old-leases",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => ({
        removed: await (await import("./upkeep.ts")).removeOldLeases(system, { days: settings.taskRetentionDays }),
      }),
    },
  ],
});
