// Preflights: whether nodes and terminals work, hop by hop.

import { defineModule } from "../module.ts";
import { retentionSetting } from "../tasks/settings.ts";
import { preflightTopic } from "./live.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of preflights. */
    preflight: true;
  }
}

export const preflights = defineModule({
  name: "preflights",
  workerSettings: { taskRetentionDays: retentionSetting },
  publicRoutes: async (api) => (await import("./routes.ts")).preflightRoutes(api),
  liveTopics: [preflightTopic],
  jobs: [
    {
      name: "end-abandoned-preflights",
      every: 30,
      runsIn: "one worker",
      run: async ({ system, signals }) => {
        const ended = await (await import("./queries.ts")).interruptAbandoned(system);
        if (ended.length > 0) signals.publish("preflight", ended);
        return { ended: ended.length };
      },
    },
    {
      name: "remove-old-preflights",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) => ({
        removed: await (await import("./queries.ts")).removeOldPreflights(system, {
          days: settings.taskRetentionDays,
        }),
      }),
    },
  ],
});
