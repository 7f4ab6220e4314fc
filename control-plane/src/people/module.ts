// People: signing in, their sessions and passwords.

import { defineModule } from "../module.ts";

export const people = defineModule({
  name: "people",
  publicRoutes: async (api) => {
    (await import("./routes.ts")).peopleRoutes(api);
    (await import("./session-routes.ts")).sessionRoutes(api);
  },
});
