// Moves leases on: applies what has happened, orders the removal of VMs, gives waiting leases to hosts. A function of stored
// rows: it may run at any time, in every replica at once, and again after a crash. A task is enqueued in the transaction that
// records it with its lease: neither exists without the other.

import type { HostNotChosen } from "@holdfast/contracts/endpoints/leases";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import { actorOf, systemActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import type { TaskRow } from "../tasks/queries.ts";
import { findDue, findEndedLaunches, findEndedTerminations } from "./detect.ts";
import { followHosts } from "./follow.ts";
import { selectTaken, selectViews, withoutUsedVms } from "./hosts-view.ts";
import { orderFetch } from "./image-orders.ts";
import type { Advancing, LeaseTasks } from "./parts.ts";
import { type HostView, planPlacements } from "./place.ts";
import { type StoredPlacement, selectWaiting, selectWaitingOrgs, type WaitingLease } from "./queries.ts";
import { type Applied, applyEvents } from "./transitions/apply.ts";
import { lockNextLeaving, setTerminateTask } from "./transitions/order-termination.ts";
import { holdPlacements, placeLease } from "./transitions/place.ts";
import { eraseUserData } from "./user-data.ts";

export async function advanceLeases(
  parts: Advancing,
): Promise<{ events: number; removals: number; placed: number }> {
  const events = (await settle(parts)) + (await followHosts(parts));
  await eraseUserData(parts.system);
  const removals = await orderRemovals(parts);
  const placed = await placeWaiting(parts);
  return { events, removals, placed };
}

async function settle({ system, onMoved }: Advancing): Promise<number> {
  let applied = 0;
  for (const find of [findEndedLaunches, findEndedTerminations, findDue]) {
    const changed = (await applyEvents(system, await find(system))).filter(isChange);
    for (const { id } of changed) onMoved(id, undefined);
    applied += changed.length;
  }
  return applied;
}

const isChange = ({ outcome }: Applied) => outcome === "moved" || outcome === "noted";

const BY = systemActor("leases");

/** Enqueues vm.terminate for each lease whose VM is to go. A launch that has not begun is cancelled. */
async function orderRemovals({ system, tasks, log, onMoved }: Advancing): Promise<number> {
  const seen: string[] = [];
  for (;;) {
    let leaseId: string | undefined;
    try {
      const ordered = await system.begin(async (tx) => {
        const lease = await lockNextLeaving(tx, seen);
        if (!lease) return undefined;
        leaseId = lease.id;
        const { host_id: nodeId, vm_id, correlation_id: correlationId } = lease;
        const unwanted = lease.launch_settled ? undefined : await tasks.cancel(tx, lease.launch_task_id);
        const details = { lease_id: lease.id };
        const wanted = { nodeId, type: "vm.terminate", params: { vm_id }, by: BY, correlationId, details };
        const task = await tasks.enqueue(tx, wanted, { audited: true });
        await setTerminateTask(tx, lease.id, task.id);
        return { task, unwanted };
      });
      if (!ordered) return seen.length;
      if (ordered.unwanted) tasks.cancelled(ordered.unwanted);
      tasks.enqueued(ordered.task);
      if (leaseId) onMoved(leaseId, ordered.task.id);
    } catch (error) {
      if (!leaseId) throw error;
      // The host takes no tasks now; it is tried again in the next turn.
      if (!(error instanceof ApiError))
        log.warn({ err: error, lease_id: leaseId }, "could not order the removal of a VM");
    }
    if (!leaseId) return seen.length;
    seen.push(leaseId);
  }
}

/** Of an organization in one turn; the others follow in the next one. */
const MOST_PLANNED = 500;

async function placeWaiting(parts: Advancing): Promise<number> {
  let placed = 0;
  for (const orgId of await selectWaitingOrgs(parts.system)) placed += await placeWaitingOf(parts, orgId);
  return placed;
}

async function placeWaitingOf(parts: Advancing, orgId: string): Promise<number> {
  const { system, policy } = parts;
  const waiting = await selectWaiting(system, orgId, MOST_PLANNED);
  const hosts = await withoutUsedVms(system, await selectViews(system, orgId, policy.staleAfterSeconds));
  const { placements, fetches } = planPlacements(waiting, hosts, policy, await selectTaken(system, orgId));
  const byId = new Map(waiting.map((lease) => [lease.id, lease]));
  let placed = 0;
  for (const { wanted, ...chosen } of placements) {
    const lease = byId.get(wanted.id);
    if (lease && (await giveTo(parts, lease, chosen))) placed += 1;
  }
  for (const { wanted, host } of fetches) {
    const image = { id: wanted.imageId, sha256: wanted.imageSha256, url: wanted.imageUrl ?? null };
    await orderFetch(parts, { orgId, nodeId: host.id, image });
  }
  return placed;
}

/** So that a row stays small in an organization with thousands of hosts. */
const MOST_EXPLAINED = 100;

class NoLongerFits extends Error {}

async function giveTo(
  { system, tasks, policy, log, onMoved }: Advancing,
  lease: WaitingLease,
  { host, notChosen, warmVmId }: { host: HostView; notChosen: readonly HostNotChosen[]; warmVmId?: string },
): Promise<boolean> {
  const vmId = warmVmId ?? uuidv7();
  const placement: StoredPlacement = {
    at: new Date().toISOString(),
    chosen: { host_id: host.id, name: host.name, message: whyChosen(host, lease, warmVmId) },
    not_chosen: notChosen.slice(0, MOST_EXPLAINED),
  };
  try {
    const task = await system.begin(async (tx) => {
      // Another replica may have placed it: that is cheaper to see before a task is signed and inserted.
      if (!(await holdPlacements(tx, lease))) throw new NoLongerFits();
      const launch = await enqueueLaunch(tx, tasks, lease, { hostId: host.id, vmId });
      const given = { leaseId: lease.id, hostId: host.id, vmId, taskId: launch.id, placement };
      if (!(await placeLease(tx, given, policy))) throw new NoLongerFits();
      return launch;
    });
    tasks.enqueued(task);
    onMoved(lease.id, task.id);
    return true;
  } catch (error) {
    if (error instanceof NoLongerFits || error instanceof ApiError) return false;
    log.warn({ err: error, lease_id: lease.id }, "could not place a lease");
    return false;
  }
}

function whyChosen({ images, name }: HostView, { imageId }: WaitingLease, warmVmId: string | undefined): string {
  if (warmVmId !== undefined) return `${name} has booted a VM of the image ${imageId} ahead, which it gets.`;
  const inUse = (images.find(({ id }) => id === imageId)?.references ?? 0) > 0;
  return inUse ? `${name} has the image ${imageId} in use already.` : `${name} has the most memory left.`;
}

async function enqueueLaunch(
  tx: Tx,
  tasks: LeaseTasks,
  lease: WaitingLease,
  { hostId, vmId }: { hostId: string; vmId: string },
): Promise<TaskRow> {
  const params = {
    vm_id: vmId,
    image: { id: lease.imageId, sha256: lease.imageSha256 },
    vcpus: lease.vcpus,
    memory_mib: lease.memoryMib,
    disk_gib: lease.diskGib,
    accelerator: lease.accelerator ?? "auto",
    hostname: `vm-${vmId.slice(-12)}`,
    ttl_seconds: lease.ttlSeconds,
    connect_within_seconds: lease.connectSeconds,
    disconnect_grace_seconds: lease.graceSeconds,
    ...(lease.userDataSha256 === null ? {} : { user_data_sha256: lease.userDataSha256 }),
  };
  const { correlationId } = lease;
  const details = { lease_id: lease.id };
  const wanted = { nodeId: hostId, type: "vm.launch", params, by: actorOf(lease), correlationId, details };
  return tasks.enqueue(tx, wanted, { audited: true });
}
