// The installation as a whole: its processes, its keys, and what belongs to no single noun.

import { defineModule } from "../module.ts";
import { platformWorkerSettings } from "./settings.ts";

export const platform = defineModule({
  name: "platform",
  workerSettings: platformWorkerSettings,
  publicRoutes: async (api) => {
    (await import("./routes.ts")).platformRoutes(api);
    (await import("./key-routes.ts")).keyRoutes(api);
  },
  jobs: [
    {
      name: "report-api-presence",
      every: 1,
      runsIn: "each api",
      run: ({ presence, reports }) => presence.look(reports()),
    },
    {
      name: "report-worker-presence",
      every: 5,
      runsIn: "each worker",
      run: ({ presence, reports }) => presence.look(reports()),
    },
    {
      name: "remove-expired-data",
      every: ({ settings }) => settings.sweepIntervalSeconds,
      runsIn: "one worker",
      run: async ({ system }) => (await import("./remove-expired.ts")).removeExpired(system),
    },
  ],
});
