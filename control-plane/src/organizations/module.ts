// Organizations.

import { defineModule } from "../module.ts";

export const organizations = defineModule({
  name: "organizations",
  publicRoutes: async (api) => (await import("./routes.ts")).organizationRoutes(api),
});
