// Members of an organization, and their invitations.

import { defineModule } from "../module.ts";

export const members = defineModule({
  name: "members",
  publicRoutes: async (api) => (await import("./routes.ts")).memberRoutes(api),
});
