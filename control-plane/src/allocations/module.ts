// Allocations: users on nodes, who owns them and who else has access.

import { defineModule } from "../module.ts";
import { allocationTopic } from "./live.ts";
import { RECONCILE_ALLOCATIONS } from "./watch.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of allocations. */
    allocation: true;
  }
}

export const allocations = defineModule({
  name: "allocations",
  publicRoutes: async (api) => {
    (await import("./routes.ts")).allocationRoutes(api);
    (await import("./sharing-routes.ts")).sharingRoutes(api);
  },
  liveTopics: [allocationTopic],
  jobs: [
    {
      name: RECONCILE_ALLOCATIONS,
      every: 5,
      // A node takes work again, or was retired.
      wakeOn: ["node_standing"],
      runsIn: "each api",
      run: async ({ system, tasks, allocations, log }) => {
        const { reconcileAllocations } = await import("./reconcile.ts");
        return { moved: await reconcileAllocations(system, tasks, { log, onMoved: allocations.changed }) };
      },
    },
    {
      name: "expire-grants",
      every: 60,
      runsIn: "one worker",
      run: async ({ system, log }) => ({
        expired: await (await import("./expire-grants.ts")).expireGrants(system, log),
      }),
    },
  ],
});
