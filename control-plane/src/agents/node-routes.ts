// A node becomes an agent that runs steps by its own certificate, where policy allows it.

import { pairNode } from "@holdfast/contracts/node/endpoints";
import type { ApiContext } from "../api/context.ts";
import { presentExecutionUrl } from "../internal-api/gateways.ts";
import { type NodeApi, nodeRoute } from "../node-api/route.ts";
import { pairByIdentity } from "./pairing.ts";

export function agentNodeRoutes(nodeApi: NodeApi, api: ApiContext): void {
  const { system, log, executions } = api;
  nodeRoute(nodeApi, pairNode, async ({ node, body, correlationId }) => {
    const gatewayWsUrl = (await presentExecutionUrl(system)) ?? executions.wsUrl;
    const isAllowed = executions.nodesAllowed();
    const paired = await pairByIdentity({ system, log, gatewayWsUrl, isAllowed }, node.id, {
      ...body,
      correlationId,
    });
    executions.agentChanged({ id: paired.agentId, orgId: paired.organizationId });
    return { ...paired, keySet: api.nodes.keys.keySet() };
  });
}
