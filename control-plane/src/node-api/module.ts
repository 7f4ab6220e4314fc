// The node-facing listener, and what it publishes to nodes about the installation.

import { defineModule } from "../module.ts";

export const nodeApi = defineModule({
  name: "node-api",
  jobs: [
    {
      name: "renew-node-api-certificate",
      // Often, because a certificate issued with a wrong clock locks every node out until it is replaced.
      every: 60,
      runsIn: "each api",
      run: async ({ nodeUpkeep }) => ({ renewed: (await nodeUpkeep.renewCertificate(new Date())) ? 1 : 0 }),
    },
    {
      name: "refresh-environment-profile",
      every: 30,
      runsIn: "each api",
      run: ({ nodeUpkeep }) => nodeUpkeep.refreshProfile(),
    },
  ],
});
