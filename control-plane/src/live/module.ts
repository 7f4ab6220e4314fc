// The sockets of open pages.

import { defineModule } from "../module.ts";

export const live = defineModule({
  name: "live",
  jobs: [
    { name: "check-live-sessions", every: 30, runsIn: "each api", run: async ({ live }) => live.checkSessions() },
  ],
});
