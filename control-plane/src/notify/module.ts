// Messages that leave the product: incidents of severity P0 and those that require security action, to webhooks and by mail;
// an unreachable database; and a monitor outside that notices when everything has stopped.

import { driftWorkerSettings } from "../drift/settings.ts";
import { defineModule } from "../module.ts";
import { nodeApiSettings } from "../nodes/settings.ts";
import { notifySettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of messages that were queued. */
    delivery: true;
  }
}

export const notify = defineModule({
  name: "notify",
  apiSettings: { ...notifySettings, nodeHeartbeatStaleSeconds: nodeApiSettings.nodeHeartbeatStaleSeconds },
  workerSettings: { incidentRetentionDays: driftWorkerSettings.incidentRetentionDays },
  publicRoutes: async (api) => {
    (await import("./receivers/routes.ts")).receiverRoutes(api);
    (await import("./deliveries/routes.ts")).deliveryRoutes(api);
  },
  // In the api, which has the key that opens the secrets of webhooks, and the one that signs tasks.
  jobs: [
    {
      name: "announce-incidents",
      every: 2,
      runsIn: "each api",
      run: async ({ system, signals, notify: { installation }, publicUrl }) => {
        const { announceIncidents } = await import("./announce/announce.ts");
        const kinds = installation.map(({ kind }) => kind);
        const queued = await announceIncidents(system, { installation: kinds, publicUrl });
        if (queued.length > 0) signals.publish("delivery", queued);
        return { queued: queued.length };
      },
    },
    {
      name: "send-deliveries",
      every: 2,
      wakeOn: ["delivery"],
      runsIn: "each api",
      run: async ({ system, failures, notify: { sender, vault, installation } }) => {
        const { deliverDue } = await import("./deliveries/deliver.ts");
        return deliverDue({ system, failures, sender, vault, installation });
      },
    },
    {
      name: "refresh-receivers",
      every: 30,
      runsIn: "each api",
      run: async ({ notify: { cache } }) => void (await cache.refresh()),
    },
    {
      name: "watch-database",
      every: 2,
      runsIn: "each api",
      run: async ({ notify: { watch } }) => ({ sent: await watch.look() }),
    },
    {
      name: "ping-deadman",
      every: ({ settings }) => (settings.deadmanUrl === undefined ? 0 : settings.deadmanIntervalSeconds),
      runsIn: "each api",
      run: async ({ system, tasks, log, notify: { deadman }, settings }) => {
        const { pingAfterRoundTrip } = await import("./deadman/ping.ts");
        const staleAfterSeconds = settings.nodeHeartbeatStaleSeconds;
        return pingAfterRoundTrip({ system, tasks, log, deadman }, { ...settings, staleAfterSeconds });
      },
    },
    {
      name: "remove-old-deliveries",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => {
        const { removeOldDeliveries } = await import("./deliveries/remove-old.ts");
        return { removed: await removeOldDeliveries(system, { days: settings.incidentRetentionDays }) };
      },
    },
  ],
});
