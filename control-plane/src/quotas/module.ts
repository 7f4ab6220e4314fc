// How many allocations an organization and its members may have.

import { defineModule } from "../module.ts";

export const quotas = defineModule({
  name: "quotas",
  publicRoutes: async (api) => (await import("./routes.ts")).quotaRoutes(api),
});
