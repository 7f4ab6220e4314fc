// Recovery bundles: what an operator carries to a host whose node cannot recover by itself.

import { defineModule } from "../module.ts";

export const bundles = defineModule({
  name: "bundles",
  publicRoutes: async (api) => (await import("./routes.ts")).bundleRoutes(api),
  nodeRoutes: async (nodeApi, { system, log }) => {
    const { recordApplied } = await import("./applied.ts");
    nodeApi.heartbeatParts.push(async (node, { applied_bundle }) => {
      if (applied_bundle) await recordApplied({ system, log }, node, applied_bundle);
      return {};
    });
  },
});
