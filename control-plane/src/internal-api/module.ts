// The internal listener, for requests and streams of gateways.

import { defineModule } from "../module.ts";

export const internalApi = defineModule({
  name: "internal-api",
  jobs: [
    {
      name: "renew-internal-api-certificate",
      every: 60 * 60,
      runsIn: "each api",
      run: async ({ internal }) => ({ renewed: (await internal?.renewCertificate(new Date())) ? 1 : 0 }),
    },
    {
      name: "announce-revocations",
      every: 1,
      wakeOn: ["node_standing"],
      runsIn: "each api",
      run: async ({ internal }) => internal?.announceRevocations(),
    },
    {
      name: "keep-gateway-streams-alive",
      every: 5,
      runsIn: "each api",
      run: async ({ internal }) => internal?.keepAlive(),
    },
  ],
});
