// Projects of an organization.

import { defineModule } from "../module.ts";

export const projects = defineModule({
  name: "projects",
  publicRoutes: async (api) => (await import("./routes.ts")).projectRoutes(api),
});
