// Workflows: drafts, the versions that are published of them, and their runs.

import { dispatchTokenSetting, gatewayHttpUrlSetting } from "@holdfast/service/settings";
import { defineModule } from "../module.ts";
import { notifySettings } from "../notify/settings.ts";
import { engineSettings, queueSetting } from "./engine/settings.ts";
import { runTopics } from "./live.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of runs. */
    workflow_run: true;
    /** Ids of workflows whose triggers changed. */
    workflow_trigger: true;
    /** Ids of requests for secrets: of workers, and answered. */
    step_secret_wanted: true;
    step_secret: true;
  }
}

const { notifyAllowPrivate } = notifySettings;

export const workflows = defineModule({
  name: "workflows",
  apiSettings: { workflowQueue: queueSetting },
  workerSettings: {
    ...engineSettings,
    notifyAllowPrivate,
    dispatchToken: dispatchTokenSetting,
    gatewayHttpUrl: gatewayHttpUrlSetting,
  },
  publicRoutes: async (api) => {
    (await import("./routes.ts")).workflowRoutes(api);
    (await import("./runs/routes.ts")).runRoutes(api);
    (await import("./runs/test-step.ts")).testStepRoutes(api);
    (await import("./runs/recent.ts")).recentRunRoutes(api);
    (await import("./triggers/routes.ts")).triggerRoutes(api);
    await (await import("./triggers/hook-route.ts")).hookRoutes(api);
  },
  liveTopics: runTopics,
  jobs: [
    {
      name: "continue-workflow-runs",
      every: ({ settings }) => settings.workflowPollMs / 1000,
      wakeOn: ["workflow_run", "execution"],
      runsIn: "each worker",
      run: async ({ system, signals, log, settings }) => {
        const { continueRuns } = await import("./engine/turn.ts");
        const { askForSecrets } = await import("./step-secrets/ask.ts");
        return continueRuns({
          ...{ system, log, pollMs: settings.workflowPollMs, concurrency: settings.workflowConcurrency },
          queue: settings.workflowQueue,
          ...{ stepTimeoutMs: settings.workflowStepTimeoutMs, runsPerOrg: settings.workflowRunsPerOrg },
          gateway: { url: settings.gatewayHttpUrl, token: settings.dispatchToken },
          allowedNetworks: settings.notifyAllowPrivate,
          onProgress: (runId) => signals.publish("workflow_run_progress", [runId]),
          askForSecret: askForSecrets({ system, signals }),
        });
      },
    },
    {
      name: "start-scheduled-runs",
      every: 1,
      wakeOn: ["workflow_trigger"],
      runsIn: "one worker",
      run: async ({ system, log, signals, settings }) => {
        const { startScheduledRuns } = await import("./triggers/schedule.ts");
        return startScheduledRuns({
          ...{ system, log, queue: settings.workflowQueue },
          onStarted: (ids) => signals.publish("workflow_run", ids),
        });
      },
    },
    {
      name: "hand-out-step-secrets",
      every: 1,
      wakeOn: ["step_secret_wanted"],
      runsIn: "each api",
      run: async ({ system, keks, signals, log }) =>
        (await import("./step-secrets/hand-out.ts")).handOutSecrets({ system, keks, signals, log }),
    },
  ],
});
