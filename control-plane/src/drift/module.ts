// Drift: what is known of each node, what follows from it, and the incidents that it adds up to.

import { defineModule } from "../module.ts";
import { verdictTopic } from "./live.ts";
import { driftWorkerSettings, policySettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of nodes with new evidence. */
    evidence: true;
    /** Ids of nodes whose verdict changed. */
    verdict: true;
  }
}

export const drift = defineModule({
  name: "drift",
  apiSettings: policySettings,
  workerSettings: driftWorkerSettings,
  publicRoutes: async (api) => {
    (await import("./explanation/routes.ts")).explanationRoutes(api);
    (await import("./incidents/routes.ts")).incidentRoutes(api);
    (await import("./tenants/notifications.ts")).notificationRoutes(api);
    (await import("./trace/routes.ts")).traceRoutes(api);
  },
  nodeRoutes: async (nodeApi, api) => (await import("./observe.ts")).observeNodes(nodeApi, api),
  liveTopics: [verdictTopic],
  jobs: [
    {
      // Reads all nodes, which takes 30 ms for 10,000: not every second.
      name: "find-silent-nodes",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, signals, settings }) => {
        const { policyOf } = await import("./policy.ts");
        const { findUnnoticed } = await import("./verdicts/find-unnoticed.ts");
        const { observeTasksDone } = await import("./observers/tasks-done.ts");
        const working = await observeTasksDone(system);
        const found = [...(await findUnnoticed(system, policyOf(settings))), ...working];
        if (found.length > 0) signals.publish("evidence", found);
        return { found: found.length };
      },
    },
    {
      name: "compare-profiles",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const { compareAllProfiles } = await import("./observers/compare-all-profiles.ts");
        const changed = await compareAllProfiles(system);
        if (changed.length > 0) signals.publish("evidence", changed);
        return { compared: changed.length };
      },
    },
    {
      name: "observe-control-plane",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const due = await (await import("./observers/control-plane.ts")).observeControlPlane(system);
        if (due.length > 0) signals.publish("evidence", due);
        return { due: due.length };
      },
    },
    {
      // Four times within the minute in which a mismatch has to be noticed.
      name: "observe-signing-ca",
      every: 15,
      atStart: true,
      runsIn: "each api",
      run: async ({ system, signals, nodes }) => {
        const { checkIngressTrust } = await import("../identity/ingress-trust/check.ts");
        const { observeSigningCa } = await import("./observers/signing-ca.ts");
        const { authority } = nodes;
        const ingresses = await checkIngressTrust(system, { authority, profile: await nodes.profile() });
        const { trust, due } = await observeSigningCa(system, authority, ingresses);
        nodes.gate.set(trust);
        if (due.length > 0) signals.publish("evidence", due);
        return { due: due.length };
      },
    },
    {
      name: "classify-nodes",
      every: 1,
      wakeOn: ["evidence", "node_standing"],
      runsIn: "one worker",
      run: async ({ system, signals, settings }) => {
        const { policyOf } = await import("./policy.ts");
        const { classifyDue } = await import("./verdicts/classify-due.ts");
        await (await import("./verdicts/find-unnoticed.ts")).noticeStandings(system);
        await (await import("./tenants/review.ts")).noticeTerminals(system);
        const { classified, changed, allocations } = await classifyDue(system, policyOf(settings));
        if (changed.length > 0) signals.publish("verdict", changed);
        if (allocations.length > 0) signals.publish("allocation", allocations);
        return { classified, changed: changed.length, allocations: allocations.length };
      },
    },
    {
      // In the api, which has the key that signs tasks.
      name: "check-recoveries",
      every: 2,
      wakeOn: ["verdict"],
      runsIn: "each api",
      run: async ({ system, signals, tasks, log }) => {
        const { runRecoveryChecks } = await import("./recovery/run-checks.ts");
        const { due, enqueued } = await runRecoveryChecks(system, tasks, log);
        if (due.length > 0) signals.publish("evidence", due);
        return { due: due.length, enqueued };
      },
    },
    {
      name: "release-notifications",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const sent = await (await import("./tenants/release.ts")).releaseNotifications(system);
        if (sent.length > 0) signals.publish("allocation", sent);
        return { sent: sent.length };
      },
    },
    {
      // Not with every change: when a whole fleet fails, its nodes are compared a few times, not hundreds of times.
      name: "relate-incidents",
      every: 2,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const { relateIncidents } = await import("./common-cause/relate.ts");
        const { defaultCommonCausePolicy } = await import("./policy.ts");
        const changed = await relateIncidents(system, defaultCommonCausePolicy);
        if (changed.length > 0) signals.publish("verdict", changed);
        return { changed: changed.length };
      },
    },
    {
      name: "remove-old-incidents",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => {
        const { removeOldIncidents } = await import("./incidents/remove-old.ts");
        const { removeOldNotifications } = await import("./tenants/remove-old.ts");
        const limit = { days: settings.incidentRetentionDays };
        return {
          removed: await removeOldIncidents(system, limit),
          notifications: await removeOldNotifications(system, limit),
        };
      },
    },
  ],
});
