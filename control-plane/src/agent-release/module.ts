// The agent that machines download, from either listener.

import { defineModule } from "../module.ts";
import { agentReleaseSettings } from "./settings.ts";

export const agentRelease = defineModule({
  name: "agent-release",
  apiSettings: agentReleaseSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).agentReleaseRoutes(api),
  nodeRoutes: async (_, api) => (await import("./routes.ts")).agentReleaseRoutes(api),
});
