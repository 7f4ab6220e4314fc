// Jenkins controllers: their queued builds get a VM each.

import { defineModule } from "../module.ts";
import { jenkinsTopic } from "./live.ts";
import { jenkinsSettings, jenkinsWorkerSettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of controllers. */
    jenkins: true;
  }
}

export const jenkins = defineModule({
  name: "jenkins",
  apiSettings: jenkinsSettings,
  workerSettings: jenkinsWorkerSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).jenkinsRoutes(api),
  liveTopics: [jenkinsTopic],
  jobs: [
    {
      name: "poll-jenkins-controllers",
      // Each controller has its own time; this only looks for those that are due.
      every: 1,
      runsIn: "each api",
      run: async ({ app, system, jenkins, leases, signals, settings, log }) => {
        const { pollControllers } = await import("./poll.ts");
        const { vmLeaseTtlSeconds, vmConnectDeadlineSeconds, vmDisconnectGraceSeconds } = leases.limits;
        return pollControllers({
          ...{ app, system, jenkins, vault: leases.vault, pollSeconds: settings.jenkinsPollSeconds, log },
          limits: {
            ttlSeconds: vmLeaseTtlSeconds,
            connectSeconds: vmConnectDeadlineSeconds,
            graceSeconds: vmDisconnectGraceSeconds,
          },
          onLease: (leaseId) => leases.changed(leaseId, undefined),
          onController: (id) => signals.publish("jenkins", [id]),
        });
      },
    },
    {
      name: "remove-old-jenkins-builds",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => ({
        removed: await (await import("./builds/queries.ts")).removeOldBuilds(system, {
          days: settings.taskRetentionDays,
        }),
      }),
    },
  ],
});
