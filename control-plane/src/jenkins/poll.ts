// Polls controllers: a function of stored rows and of what a controller reports. It may be killed between any two steps and run in
// every replica at once: each step is repeated without harm, and what a crash left behind is found by its mark or its row.
//
// The controller's nodes are read before the builds: a node is made after its build was stored, so one that is in the list without an
// open build is left over.

import type { JenkinsQueueItem } from "@holdfast/contracts/endpoints/jenkins";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { applyEvents } from "../leases/transitions/apply.ts";
import { decideClaims, type JudgedItem, type QueuedItem } from "./builds/decide-claims.ts";
import { decideProgress, type Progress } from "./builds/decide-progress.ts";
import { type LeasingParts, leaseBuild } from "./builds/lease.ts";
import { type BuildRow, selectKnownBuilds, selectOpenBuilds } from "./builds/queries.ts";
import { type BuildReasonCode, buildReason, controllerDisabled } from "./builds/reasons.ts";
import { applyToBuild, type BuildHappened } from "./builds/transitions/apply.ts";
import { claimItem } from "./builds/transitions/claim.ts";
import type { BuildEvent } from "./builds/transitions/table.ts";
import type { ControllerNode, JenkinsClient } from "./client/client.ts";
import { backoffSeconds, JenkinsFailure, problemOf } from "./client/failure.ts";
import { leaseOfNode } from "./client/node.ts";
import { type PolledController, recordFailure, recordSuccess, takeDueControllers } from "./controllers.ts";
import type { Jenkins } from "./open.ts";
import { POLL_BUDGET_MS, START_SECONDS } from "./settings.ts";

export type Polling = LeasingParts & {
  system: Sql;
  jenkins: Pick<Jenkins, "connect"> & { vault: Pick<Jenkins["vault"], "open"> };
  pollSeconds: number;
  log: Log;
  onLease(leaseId: string): void;
  onController(controllerId: string): void;
};

const MOST_AT_ONCE = 10;
const MOST_QUEUE_SHOWN = 100;

export async function pollControllers(parts: Polling): Promise<{ polled: number; failed: number }> {
  const due = await takeDueControllers(parts.system, MOST_AT_ONCE);
  const outcomes = await Promise.all(due.map((controller) => pollOne(parts, controller)));
  return { polled: due.length, failed: outcomes.filter((succeeded) => !succeeded).length };
}

async function pollOne(parts: Polling, controller: PolledController): Promise<boolean> {
  const { system, pollSeconds, log } = parts;
  try {
    // Needs no controller: its VMs end also while it is down.
    await endLeases(parts, controller);
    const queue = await serve(parts, controller, await connect(parts, controller));
    await recordSuccess(system, controller.id, { queue, nextSeconds: pollSeconds });
    return true;
  } catch (error) {
    const failure =
      error instanceof JenkinsFailure
        ? error
        : new JenkinsFailure("unexpected", "The poll failed; the api's log says why.");
    const level = error instanceof JenkinsFailure ? "info" : "error";
    log[level]({ err: error, controller_id: controller.id }, "could not poll a Jenkins controller");
    const nextSeconds = backoffSeconds(failure, controller.failures + 1, pollSeconds);
    await recordFailure(system, controller, { problem: problemOf(failure, controller.name), nextSeconds });
    return false;
  } finally {
    parts.onController(controller.id);
  }
}

/** No request begins after the time that a poll may take: another process may poll then. */
async function connect(
  { jenkins }: Polling,
  { id, url, user_name: user, sealed_token }: PolledController,
): Promise<JenkinsClient> {
  const until = performance.now() + POLL_BUDGET_MS;
  const client = await jenkins.connect({ url, user, token: jenkins.vault.open({ id, url }, sealed_token) });
  const limited =
    (call: unknown) =>
    (...given: unknown[]) => {
      if (performance.now() > until) throw new JenkinsFailure("unreachable", "It responds too slowly.");
      return (call as (...all: unknown[]) => unknown)(...given);
    };
  return Object.fromEntries(Object.entries(client).map(([name, call]) => [name, limited(call)])) as JenkinsClient;
}

async function serve(
  parts: Polling,
  controller: PolledController,
  client: JenkinsClient,
): Promise<JenkinsQueueItem[]> {
  const nodes = new Map((await client.nodes()).map((node) => [node.name, node]));
  const items = await client.queue();
  const queued = new Set(items.map(({ queueId }) => queueId));
  const open = await selectOpenBuilds(parts.system, controller.id);
  for (const build of open) {
    const node = nodes.get(build.node_name);
    await follow(parts, controller, client, build, { node, isQueued: queued.has(build.queue_id) });
  }
  const judged = await claim(parts, controller, items);
  for (const build of await selectOpenBuilds(parts.system, controller.id)) {
    if (build.status === "claimed") await makeLease(parts, controller, client, build);
  }
  await endLeases(parts, controller);
  for (const build of await selectOpenBuilds(parts.system, controller.id)) {
    if (build.status === "removing") await remove(parts, client, build);
  }
  const known = new Set(open.map(({ lease_id }) => lease_id));
  await removeStrays(parts, controller, client, { nodes: [...nodes.values()], known });
  return judged.slice(0, MOST_QUEUE_SHOWN).map(presentItem);
}

const presentItem = ({ item, verdict, message }: JudgedItem): JenkinsQueueItem => ({
  ...{ queue_id: item.queueId, task: item.task.slice(0, 200), label: item.label ?? null, verdict, message },
  queued_at: item.queuedAt === undefined ? null : new Date(item.queuedAt).toISOString(),
});

async function follow(
  parts: Polling,
  controller: PolledController,
  client: JenkinsClient,
  build: BuildRow,
  { node, isQueued }: { node: ControllerNode | undefined; isQueued: boolean },
): Promise<void> {
  const limits = { ...limitsOf(parts, controller, build), startSeconds: START_SECONDS };
  const { event, action }: Progress = decideProgress(
    { status: build.status, lostAt: build.lost_at?.getTime(), leftAt: build.left_at?.getTime() },
    {
      lease:
        build.lease_status === null
          ? undefined
          : { status: build.lease_status, startedAt: build.lease_started_at?.getTime() },
      ...{ node, isQueued },
    },
    limits,
    Date.now(),
  );
  if (action === "hold_offline") await client.holdOffline(build.node_name);
  // Another process may have made it after the list was read.
  if (event === "node_missing" && (await client.hasNode(build.node_name))) return;
  if (event) await happen(parts, controller, build, await described(client, build, event, node));
}

/** What an item that is gone has become decides the words. */
async function described(
  client: JenkinsClient,
  build: BuildRow,
  event: BuildEvent,
  node: ControllerNode | undefined,
): Promise<Pick<BuildHappened, "event" | "buildUrl"> & { code?: BuildReasonCode }> {
  if (event === "build_started") return { event, buildUrl: node?.buildUrl ?? null };
  if (event !== "item_gone") return { event };
  const left = await client.leftItem(build.queue_id);
  return { event, code: left?.cancelled ? "item_cancelled" : "item_left", buildUrl: left?.buildUrl ?? null };
}

const reasonOfEvent: Partial<Record<BuildEvent, BuildReasonCode>> = {
  build_ended: "build_ended",
  never_connected: "never_connected",
  disconnected: "disconnected",
  lease_ended: "lease_ended",
  node_missing: "node_missing",
};

async function happen(
  parts: Polling,
  controller: PolledController,
  build: BuildRow,
  {
    event,
    code = reasonOfEvent[event],
    buildUrl = null,
  }: Pick<BuildHappened, "event" | "buildUrl"> & { code?: BuildReasonCode | undefined },
): Promise<void> {
  const about = {
    ...{ leaseId: build.lease_id, leaseLabel: build.lease_label, nodeName: build.node_name },
    ...limitsOf(parts, controller, build),
  };
  const reason = code === undefined ? null : buildReason(code, about);
  const applied = await applyToBuild(parts.system, { buildId: build.id, event, reason, buildUrl });
  if (event !== "build_started" || applied?.outcome !== "moved") return;
  // Refused where the guest has no channel to its host: the lease is not `running` then, and nothing else changes.
  const work = (buildUrl ?? build.task).slice(0, 200);
  await applyEvents(parts.system, [{ leaseId: build.lease_id, vmId: null, event: "work_started", work }]);
  parts.onLease(build.lease_id);
}

const limitsOf = (parts: Polling, controller: PolledController, build: BuildRow) => ({
  connectSeconds: controller.connect_seconds,
  graceSeconds: build.grace_seconds ?? parts.limits.graceSeconds,
});

async function claim(
  parts: Polling,
  controller: PolledController,
  items: readonly QueuedItem[],
): Promise<JudgedItem[]> {
  const { system } = parts;
  const known = await selectKnownBuilds(system, controller.id, {
    queueIds: items.map(({ queueId }) => queueId),
    sinceSeconds: controller.cooldown_seconds,
  });
  const serving = {
    ...{ labels: controller.labels, mostLeases: controller.most_leases, burst: controller.burst },
    cooldownSeconds: controller.cooldown_seconds,
  };
  const { claims, judged } = decideClaims(items, known, serving, Date.now());
  if (!controller.enabled) return judged.filter(({ verdict }) => verdict !== "gets_vm");
  for (const { item, policy } of claims) {
    await claimItem(system, { controller: { id: controller.id, orgId: controller.org_id }, item, policy });
  }
  return judged;
}

async function makeLease(
  parts: Polling,
  controller: PolledController,
  client: JenkinsClient,
  build: BuildRow,
): Promise<void> {
  const { refused } = controller.enabled
    ? await leaseBuild(parts, client, build, controller)
    : { refused: controllerDisabled };
  if (refused) await applyToBuild(parts.system, { buildId: build.id, event: "not_leased", reason: refused });
  else parts.onLease(build.lease_id);
}

/** Terminates the leases of builds that are being removed. */
async function endLeases(parts: Polling, controller: PolledController): Promise<void> {
  for (const build of await selectOpenBuilds(parts.system, controller.id)) {
    if (build.status !== "removing" || build.lease_status === null || isOver(build)) continue;
    const message = build.reason?.message ?? "Its build has ended.";
    const happened = { leaseId: build.lease_id, vmId: null, event: "terminate" as const, message };
    const [applied] = await applyEvents(parts.system, [happened]);
    if (applied?.outcome === "moved") parts.onLease(build.lease_id);
  }
}

/** Leases finish what they have begun by themselves; an orphaned one is repeated until its host confirms. */
const isOver = ({ lease_status }: BuildRow) =>
  lease_status === null || ["terminated", "failed", "orphaned"].includes(lease_status);

async function remove(parts: Polling, client: JenkinsClient, build: BuildRow): Promise<void> {
  await client.deleteNode(build.node_name);
  if (isOver(build)) await applyToBuild(parts.system, { buildId: build.id, event: "removed" });
}

/** Nodes that carry the mark of this controller's entry and belong to no build: of a crash, or of a database that was restored. */
async function removeStrays(
  parts: Polling,
  controller: PolledController,
  client: JenkinsClient,
  { nodes, known }: { nodes: readonly ControllerNode[]; known: ReadonlySet<string> },
): Promise<void> {
  for (const node of nodes) {
    const leaseId = leaseOfNode(node, controller.id);
    // A build that runs there is not cut off; its node is deleted when it has ended.
    if (leaseId === undefined || known.has(leaseId) || node.busy) continue;
    parts.log.warn(
      { controller_id: controller.id, node: node.name },
      "deleted a Jenkins node that belongs to no build",
    );
    await client.deleteNode(node.name);
  }
}
