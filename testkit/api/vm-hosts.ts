// VM hosts of a running test api: enrolled nodes whose heartbeats report VMs.

import { addImage } from "@holdfast/contracts/endpoints/images";
import { createLease } from "@holdfast/contracts/endpoints/leases";
import type { VmHostReport } from "@holdfast/contracts/node/vm-host";
import type { TestApi } from "./api.ts";
import { hostReport, IMAGE } from "./leases.ts";
import { heartbeatOf, hostFacts, sendHeartbeatFrom, type TestNode } from "./nodes.ts";

export async function reportVms(node: TestNode, report: Partial<VmHostReport> = {}): Promise<void> {
  const facts = { ...hostFacts, capabilities: [...hostFacts.capabilities, "vm_host"] };
  await sendHeartbeatFrom(node, heartbeatOf({ facts, vm_host: hostReport(report) }));
}

/** Makes the node a host, and requests a VM that is too large for it. Returns the lease's id. */
export async function leaseOn(api: TestApi, { orgId, node }: { orgId: string; node: TestNode }): Promise<string> {
  await reportVms(node);
  const client = api.operator(orgId);
  await client(addImage, { body: IMAGE });
  return (await client(createLease, { body: { image_id: IMAGE.id, profile: "large", arch: "arm64" } })).id;
}
