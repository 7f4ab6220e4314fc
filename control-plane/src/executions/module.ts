// Executions: steps of workflows that run on agents in private networks.

import { defineModule } from "../module.ts";
import { executionTopic } from "./live.ts";
import { executionSettings, executionWorkerSettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of executions. */
    execution: true;
    /** Ids of executions that have ended, where another gateway may wait for the end. */
    execution_ended: true;
    /** Ids of agents that have work which was not sent yet, or is to stop. */
    agent_work: true;
  }
}

export const executions = defineModule({
  name: "executions",
  apiSettings: executionSettings,
  workerSettings: executionWorkerSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).executionRoutes(api),
  internalRoutes: async (internalApi, api) =>
    (await import("./internal-routes.ts")).executionInternalRoutes(internalApi, api),
  liveTopics: [executionTopic],
  jobs: [
    {
      name: "sweep-executions",
      every: 1,
      runsIn: "each api",
      run: ({ executions }) => executions.sweep(),
    },
    {
      name: "announce-execution-work",
      every: 2,
      runsIn: "each api",
      run: async ({ executions, terminals }) => terminals.publish(await executions.announcements.unfinished()),
    },
    {
      name: "erase-execution-results",
      every: 10,
      runsIn: "one worker",
      run: async ({ system, signals, settings }) =>
        (await import("./erase.ts")).eraseResults(system, signals, {
          afterSeconds: settings.executionResultsTtlSeconds,
        }),
    },
    {
      name: "remove-old-executions",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => ({
        removed: await (await import("./erase.ts")).removeOldExecutions(system, {
          days: settings.taskRetentionDays,
        }),
      }),
    },
    {
      name: "recount-executions",
      every: 60,
      runsIn: "one worker",
      run: async ({ system, signals, log }) =>
        (await import("./recount.ts")).recountInFlight(system, signals, log),
    },
  ],
});
