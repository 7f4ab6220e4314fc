// The agent that machines download, from either listener.

import { defineModule } from "../module.ts";

export const agentRelease = defineModule({
  name: "agent-release",
  publicRoutes: async (api) => (await import("./routes.ts")).agentReleaseRoutes(api),
  nodeRoutes: async (_, api) => (await import("./routes.ts")).agentReleaseRoutes(api),
});
