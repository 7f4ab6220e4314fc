// Terminals: shells on nodes that people open and can attach to again.

import { defineModule } from "../module.ts";
import { retentionSetting } from "../tasks/settings.ts";
import { terminalTopic } from "./live.ts";
import { terminalSettings } from "./settings.ts";
import { END_LOST_TERMINALS } from "./watch.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of terminals. */
    terminal: true;
    /** Ids of terminals that are to close. */
    terminal_closing: true;
  }
}

export const terminals = defineModule({
  name: "terminals",
  apiSettings: terminalSettings,
  workerSettings: { taskRetentionDays: retentionSetting },
  publicRoutes: async (api) => (await import("./routes.ts")).terminalRoutes(api),
  internalRoutes: async (internalApi, api) =>
    (await import("./internal-routes.ts")).terminalInternalRoutes(internalApi, api),
  liveTopics: [terminalTopic],
  jobs: [
    {
      name: END_LOST_TERMINALS,
      every: 2,
      wakeOn: ["allocation", "node_standing"],
      runsIn: "each api",
      run: async ({ system, terminals }) => {
        const lost = await (await import("./access.ts")).endLostAccess(system);
        terminals.watch.closing(lost);
        return { closing: lost.length };
      },
    },
    {
      name: "announce-closing-terminals",
      every: 2,
      wakeOn: ["terminal_closing"],
      runsIn: "each api",
      run: async ({ system, terminals }) =>
        terminals.publish(await (await import("./queries.ts")).selectClosing(system, null)),
    },
    {
      name: "end-terminals",
      every: 15,
      runsIn: "one worker",
      run: async ({ system, signals, log }) => {
        const { observeEnded } = await import("../drift/observers/terminals.ts");
        const { endTerminals } = await import("./end-terminals.ts");
        return { ended: await endTerminals(system, signals, log, observeEnded({ system, signals })) };
      },
    },
    {
      name: "remove-old-terminals",
      every: 600,
      runsIn: "one worker",
      run: async ({ system, settings }) =>
        (await import("./end-terminals.ts")).removeOldTerminals(system, { days: settings.taskRetentionDays }),
    },
  ],
});
