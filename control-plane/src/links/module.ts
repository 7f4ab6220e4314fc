// One-time links: invitations and administrators.

import { defineModule } from "../module.ts";

export const links = defineModule({
  name: "links",
  publicRoutes: async (api) => (await import("./routes.ts")).linkRoutes(api),
});
