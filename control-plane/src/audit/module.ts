// The audit trail: who did what, and when.

import { defineModule } from "../module.ts";
import { auditSettings } from "./settings.ts";

export const audit = defineModule({
  name: "audit",
  apiSettings: auditSettings,
  workerSettings: auditSettings,
  publicRoutes: async (api) => (await import("./routes.ts")).auditRoutes(api),
  jobs: [
    {
      name: "audit-recovered-failures",
      every: 5,
      runsIn: "one worker",
      run: async ({ system, log, settings }) => {
        const { auditConnected, removeForgotten } = await import("./failures/upkeep.ts");
        const { openFailureAudit } = await import("./failures/failures.ts");
        const rules = { windowSeconds: settings.auditDedupeWindowSeconds };
        const recovered = await auditConnected(
          system,
          openFailureAudit(log, () => rules.windowSeconds),
          rules,
        );
        return { recovered, forgotten: await removeForgotten(system) };
      },
    },
  ],
});
