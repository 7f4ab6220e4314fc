// Nodes: enrollment, identity, lifecycle and health of the machines.

import { defineModule } from "../module.ts";
import { nodeTopic } from "./live.ts";
import { nodeApiSettings, nodeWorkerSettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of nodes whose status or certificates changed. */
    node_standing: true;
    /** Ids of nodes whose identity more than one process may use. */
    node_holders: true;
  }
}

export const nodes = defineModule({
  name: "nodes",
  apiSettings: nodeApiSettings,
  workerSettings: nodeWorkerSettings,
  publicRoutes: async (api) => {
    (await import("./directory/routes.ts")).nodeRoutes(api);
    const { enrollmentRoutes, enrollmentTokenRoutes } = await import("./enrollment/routes.ts");
    enrollmentTokenRoutes(api);
    (await import("./holders/routes.ts")).cloneRoutes(api);
    enrollmentRoutes(api);
  },
  nodeRoutes: async (nodeApi, api) => {
    (await import("./enrollment/routes.ts")).enrollmentRoutes(api);
    (await import("./node-routes.ts")).nodeFacingRoutes(nodeApi, api);
  },
  liveTopics: [nodeTopic],
  jobs: [
    { name: "refresh-node-standings", every: 1, runsIn: "each api", run: ({ nodes }) => nodes.directory.look() },
    {
      // In the api, which has the key that signs tasks.
      name: "probe-health",
      every: 10,
      runsIn: "each api",
      run: async ({ system, tasks, log, settings }) => {
        const { probeHealth } = await import("./presence/probe-health.ts");
        const { nodeHealthProbeIntervalSeconds: intervalSeconds, nodeHeartbeatStaleSeconds: staleAfterSeconds } =
          settings;
        if (intervalSeconds === 0) return { probed: 0 };
        return { probed: await probeHealth(system, tasks, { intervalSeconds, staleAfterSeconds, log }) };
      },
    },
    {
      name: "audit-offline-nodes",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, log, settings }) => {
        const { auditOffline } = await import("./presence/audit-offline.ts");
        const rules = { staleAfterSeconds: settings.nodeHeartbeatStaleSeconds };
        return { offline: await auditOffline(system, log, rules) };
      },
    },
    {
      name: "report-overdue-renewals",
      every: 60,
      runsIn: "one worker",
      run: async ({ system, log }) => ({
        overdue: await (await import("./identity/upkeep.ts")).reportOverdueRenewals(system, log),
      }),
    },
    {
      name: "remove-old-identities",
      every: 600,
      runsIn: "one worker",
      run: async ({ system }) => (await import("./identity/upkeep.ts")).removeOldIdentities(system),
    },
  ],
});
