// Gives a claimed item its node and its lease. The order is what makes a crash harmless: the claim names both before either exists;
// the node exists before the lease, whose user data needs the node's secret; and the lease is stored with the claim's next state.

import { ApiError } from "@holdfast/contracts/errors";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { systemActor } from "../../audit/record.ts";
import { type Sql, withOrg } from "../../database/connect.ts";
import { selectImages, selectLabels } from "../../leases/queries.ts";
import { resolveRequest } from "../../leases/resolve.ts";
import { insertLease } from "../../leases/transitions/create.ts";
import { storeUserData, type UserDataVault } from "../../leases/user-data.ts";
import type { JenkinsClient } from "../client/client.ts";
import { WAIT_FOR_HOST_SECONDS } from "../settings.ts";
import { agentUserData } from "../user-data.ts";
import type { BuildRow } from "./queries.ts";
import { leaseRefused, nodeRefused } from "./reasons.ts";
import { applyToBuild } from "./transitions/apply.ts";

export type LeasingParts = {
  app: Sql;
  vault: UserDataVault;
  limits: { ttlSeconds: number; connectSeconds: number; graceSeconds: number };
};

const BY = systemActor("jenkins");

/** `refused`: why it gets no VM, for now. */
export async function leaseBuild(
  parts: LeasingParts,
  client: Pick<JenkinsClient, "createNode" | "agentSecret">,
  build: BuildRow,
  controller: { id: string; url: string },
): Promise<{ refused?: TaskFailure }> {
  const { node_name: name, lease_id: leaseId, node_labels: labels } = build;
  const made = await client.createNode({ name, leaseId, controllerId: controller.id, labels });
  if (made.refused !== undefined) return { refused: nodeRefused(made.refused) };
  const secret = await client.agentSecret(name);
  if (secret === undefined) return { refused: nodeRefused("it does not exist after it was created.") };
  const text = agentUserData({ url: controller.url, nodeName: name, secret });
  try {
    await storeLease(parts, build, text);
    return {};
  } catch (error) {
    if (error instanceof ApiError) return { refused: leaseRefused(error.message, error.nextStep) };
    throw error;
  }
}

class NoLongerClaimed extends Error {}

/** All of it, or nothing: another process may have done it meanwhile, or the item may be gone. */
async function storeLease({ app, vault, limits }: LeasingParts, build: BuildRow, text: string): Promise<void> {
  const { lease_id: id, org_id: orgId } = build;
  try {
    await withOrg(app, orgId, async (tx) => {
      const moved = await applyToBuild(tx, { buildId: build.id, event: "leased" });
      if (moved?.outcome !== "moved") throw new NoLongerClaimed();
      const labels = await selectLabels(tx);
      const wanted = resolveRequest({ label: build.lease_label }, labels, await selectImages(tx, { lock: true }));
      const times = { ...limits, waitSeconds: WAIT_FOR_HOST_SECONDS };
      await insertLease(tx, { ...wanted, ...times, id, orgId, correlationId: id }, BY);
      await storeUserData(tx, vault, { leaseId: id, orgId, text });
    });
  } catch (error) {
    if (!(error instanceof NoLongerClaimed)) throw error;
  }
}
