// All nodes of an organization at once: counts, the picture, what nodes in trouble have in common.

import { defineModule } from "../module.ts";
import { fleetTopic } from "./live.ts";

export const fleet = defineModule({
  name: "fleet",
  publicRoutes: async (api) => {
    (await import("./routes.ts")).fleetRoutes(api);
    (await import("./forecast/routes.ts")).forecastRoutes(api);
  },
  liveTopics: [fleetTopic],
  jobs: [{ name: "refresh-fleets", every: 1, runsIn: "each api", run: ({ fleets }) => fleets.refresh() }],
});
