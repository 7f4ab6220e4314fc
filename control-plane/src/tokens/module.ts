// API tokens.

import { defineModule } from "../module.ts";

export const tokens = defineModule({
  name: "tokens",
  publicRoutes: async (api) => (await import("./routes.ts")).tokenRoutes(api),
});
