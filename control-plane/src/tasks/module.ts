// Tasks: work for nodes, and its results.

import { defineModule } from "../module.ts";
import { taskTopic } from "./live.ts";
import { taskWorkerSettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of nodes that may have work. */
    node_work: true;
    /** Ids of tasks. */
    task: true;
  }
}

export const tasks = defineModule({
  name: "tasks",
  workerSettings: taskWorkerSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).taskRoutes(api),
  nodeRoutes: async (nodeApi, api) => (await import("./node-routes.ts")).nodeTaskRoutes(nodeApi, api.tasks),
  liveTopics: [taskTopic],
  jobs: [
    { name: "refresh-task-signing-keys", every: 60, runsIn: "each api", run: ({ nodes }) => nodes.keys.refresh() },
    {
      name: "sweep-tasks",
      every: ({ settings }) => settings.taskSweepIntervalSeconds,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const { observeSwept } = await import("../drift/observers/tasks.ts");
        return (await import("./sweep.ts")).sweepTasks(system, signals, observeSwept({ system, signals }));
      },
    },
    {
      name: "remove-old-tasks",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => {
        const { removeOldTasks } = await import("./remove-old.ts");
        return { removed: await removeOldTasks(system, { days: settings.taskRetentionDays }) };
      },
    },
  ],
});
