// Recovery: how a node that lost its identity gets another one by itself.

import { defineModule } from "../module.ts";
import { recoverySettings } from "./settings.ts";

export const recovery = defineModule({
  name: "recovery",
  apiSettings: recoverySettings,
  workerSettings: recoverySettings,
  publicRoutes: async (api) => {
    const { recoveryRoutes, recoveryTokenRoutes } = await import("./routes.ts");
    recoveryTokenRoutes(api);
    recoveryRoutes(api);
  },
  nodeRoutes: async (nodeApi, api) => {
    (await import("./routes.ts")).recoveryRoutes(api);
    const { createTokenRefresh } = await import("./refresh.ts");
    const { system, signals, log, recovery: policy, nodes } = api;
    const profile = async () => (await nodes.profile()).name;
    const refresh = createTokenRefresh({ system, signals, policy, profile, log });
    nodeApi.heartbeatParts.push((node, report) => refresh.after(node, report.recovery));
  },
  jobs: [
    {
      name: "expire-recovery-tokens",
      every: 60,
      runsIn: "one worker",
      run: async ({ system, log, settings }) => {
        const { auditTokenDays, expireTokens, revokeAllTokens } = await import("./upkeep.ts");
        const revoked = settings.nodeAutomaticRecovery === "off" ? await revokeAllTokens(system) : 0;
        return { ...(await expireTokens(system)), revoked, audited: await auditTokenDays(system, log) };
      },
    },
  ],
});
