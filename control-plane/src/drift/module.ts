// Drift: what is known of each node, what follows from it, and the incidents that it adds up to.

import { defineModule } from "../module.ts";
import { nodeWorkerSettings } from "../nodes/settings.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of nodes with new evidence. */
    evidence: true;
    /** Ids of nodes whose verdict changed. */
    verdict: true;
  }
}

export const drift = defineModule({
  name: "drift",
  workerSettings: nodeWorkerSettings,
  publicRoutes: async (api) => (await import("./explanation/routes.ts")).explanationRoutes(api),
  nodeRoutes: async (nodeApi, api) => (await import("./observe.ts")).observeNodes(nodeApi, api),
  jobs: [
    {
      name: "classify-nodes",
      every: 1,
      wakeOn: ["evidence", "node_standing"],
      runsIn: "one worker",
      run: async ({ system, signals, settings }) => {
        const { classifyDue, findUnnoticed } = await import("./verdicts/classify-due.ts");
        const { defaultPolicy } = await import("./policy.ts");
        const policy = { ...defaultPolicy, heartbeatStaleAfterMs: settings.nodeHeartbeatStaleSeconds * 1000 };
        await findUnnoticed(system, policy);
        const { classified, changed } = await classifyDue(system, policy);
        if (changed.length > 0) signals.publish("verdict", changed);
        return { classified, changed: changed.length };
      },
    },
  ],
});
