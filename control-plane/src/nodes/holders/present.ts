// The two machines with one identity as the API presents them, to operators only.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Tx } from "../../database/connect.ts";
import { type Holder, lastProved } from "./lineage.ts";
import { recommendOriginal } from "./original.ts";
import { selectLineages } from "./review.ts";

export async function selectClone(tx: Tx, nodeId: string): Promise<Explanation["clone"]> {
  const lineage = (await selectLineages(tx, [nodeId])).get(nodeId);
  const pair = lineage && lastProved(lineage);
  const recommendation = lineage && recommendOriginal(lineage);
  if (!pair || !recommendation) return null;
  return { instances: pair.map(presentHolder), ...recommendation };
}

function presentHolder({ id, instanceId, bootId, serial, ...holder }: Holder) {
  const { hostname, address, firstAt, lastAt } = holder;
  return {
    ...{ holder: id, instance_id: instanceId, boot_id: bootId, certificate_serial: serial, hostname, address },
    ...{ first_seen_at: new Date(firstAt).toISOString(), last_seen_at: new Date(lastAt).toISOString() },
  };
}
