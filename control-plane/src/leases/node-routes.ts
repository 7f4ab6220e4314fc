// User data with secrets, for the host that launches the VM.

import { takeVmUserData } from "@holdfast/contracts/node/endpoints";
import type { ApiContext } from "../api/context.ts";
import { type NodeApi, nodeRoute } from "../node-api/route.ts";
import { takeUserData } from "./user-data.ts";

export function leaseNodeRoutes(nodeApi: NodeApi, { system, leases }: ApiContext): void {
  nodeRoute(nodeApi, takeVmUserData, async ({ params, node }) => {
    const text = await takeUserData(system, leases.vault, { nodeId: node.id, vmId: params.vm_id });
    return { user_data: text ?? null };
  });
}
