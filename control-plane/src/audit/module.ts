// Who did what.

import { defineModule } from "../module.ts";

export const audit = defineModule({
  name: "audit",
  publicRoutes: async (api) => (await import("./routes.ts")).auditRoutes(api),
});
