// Evidence bundles: everything about a node, an allocation, an incident or an id in one signed file.

import { defineModule } from "../module.ts";

export const evidenceBundles = defineModule({
  name: "evidence-bundles",
  publicRoutes: async (api) => (await import("./routes.ts")).evidenceRoutes(api),
  jobs: [
    {
      name: "remove-old-evidence-bundles",
      every: 600,
      runsIn: "one worker",
      run: async ({ system }) => ({ removed: await (await import("./queries.ts")).removeOldBundles(system) }),
    },
  ],
});
