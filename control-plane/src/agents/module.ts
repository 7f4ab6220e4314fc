// Agents that run steps of workflows in private networks, with their connections.

import { defineModule } from "../module.ts";
import { agentTopic } from "./live.ts";
import { agentSettings } from "./settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of agents. */
    agent: true;
    /** Ids of agents that were revoked. */
    agent_revoked: true;
  }
}

export const agents = defineModule({
  name: "agents",
  apiSettings: agentSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).agentRoutes(api),
  nodeRoutes: async (nodeApi, api) => (await import("./node-routes.ts")).agentNodeRoutes(nodeApi, api),
  internalRoutes: async (internalApi, api) =>
    (await import("./internal-routes.ts")).agentInternalRoutes(internalApi, api),
  liveTopics: [agentTopic],
  jobs: [
    {
      name: "remove-pairing-tokens-of-agents",
      every: 600,
      runsIn: "one worker",
      run: async ({ system }) => ({
        removed: await (await import("./pairing.ts")).removeOldPairingTokens(system),
      }),
    },
  ],
});
