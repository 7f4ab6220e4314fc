// Policy: limits that the platform's operator changes while it runs.

import { defineModule } from "../module.ts";
import { allPolicySettings } from "./keys.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Keys whose value was changed. */
    policy: true;
  }
}

export const policy = defineModule({
  name: "policy",
  apiSettings: allPolicySettings,
  workerSettings: allPolicySettings,
  publicRoutes: async (api) => (await import("./routes.ts")).policyRoutes(api),
  jobs: [
    {
      name: "refresh-policy",
      every: 2,
      wakeOn: ["policy"],
      runsIn: "each api",
      run: async ({ policies }) => ({ changed: (await policies.refresh()).length }),
    },
    {
      name: "refresh-policy-in-worker",
      every: 2,
      wakeOn: ["policy"],
      runsIn: "each worker",
      run: async ({ system, policies }) => {
        const changed = await policies.refresh();
        if (changed.includes("node.disk_pressure_percent")) {
          // A limit of the classifier that no observation of a node is compared with again.
          await system`UPDATE node_verdicts SET review_at = now() WHERE review_at > now()`;
        }
        return { changed: changed.length };
      },
    },
  ],
});
