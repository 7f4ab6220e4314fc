// Secrets: named values of an organization that steps may get, and the key-encryption keys around everything that is sealed.

import { defineModule } from "../module.ts";

export const secrets = defineModule({
  name: "secrets",
  publicRoutes: async (api) => {
    (await import("./routes.ts")).secretRoutes(api);
    (await import("./kek/routes.ts")).kekRoutes(api);
  },
});
