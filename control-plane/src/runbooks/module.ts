// Runbooks: what to do about each reason.

import { defineModule } from "../module.ts";

export const runbooks = defineModule({
  name: "runbooks",
  publicRoutes: async (api) => (await import("./routes.ts")).runbookRoutes(api),
});
