// The audit trail: who did what, and when.

import { defineModule } from "../module.ts";

export const audit = defineModule({
  name: "audit",
  publicRoutes: async (api) => (await import("./routes.ts")).auditRoutes(api),
});
