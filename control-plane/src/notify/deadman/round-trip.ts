// A full round trip through a canary node: a signed task is queued, taken by the agent, executed, and its result accepted. It
// proves that the installation does its work, as opposed to that a process runs.

import { hostname } from "node:os";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../../audit/record.ts";
import type { Sql, Tx } from "../../database/connect.ts";
import type { TaskEngine } from "../../tasks/engine.ts";
import { selectTask } from "../../tasks/queries.ts";

const TYPE = "node.noop";
const BY = systemActor("holdfast");
const AUDIT_EVERY = "1 day";

export type Canary = { id: string; org_id: string; name: string };

/** Throws with the reason if there is none. */
export async function findCanary(
  system: Sql,
  { wanted, staleAfterSeconds }: { wanted: string | undefined; staleAfterSeconds: number },
): Promise<Canary> {
  const chosen =
    wanted === undefined
      ? system`p.heartbeat #>> '{facts,hostname}' = ${hostname()}
          AND p.heartbeat_at > now() - ${staleAfterSeconds} * interval '1 second'`
      : system`(n.id::text = ${wanted.toLowerCase()} OR n.name = ${wanted})`;
  const rows = await system<Canary[]>`
    SELECT n.id, n.org_id, n.name FROM nodes n JOIN node_presence p ON p.node_id = n.id
    WHERE n.status = 'active' AND n.revoked_at IS NULL AND ${chosen}
    ORDER BY p.heartbeat_at DESC LIMIT 2`;
  const [canary, another] = rows;
  if (!canary) {
    throw new Error(
      wanted === undefined
        ? "no node on this machine is online; set HOLDFAST_DEADMAN_NODE to a node's id"
        : `no active node has the id or name ${wanted}`,
    );
  }
  if (wanted !== undefined && another) throw new Error(`several nodes are named ${wanted}; use the id`);
  return canary;
}

/** Returns how many milliseconds it took. Throws if it was not completed in time. */
export async function roundTrip(
  { system, tasks, log }: { system: Sql; tasks: TaskEngine; log: Log },
  canary: Canary,
  { waitMs }: { waitMs: number },
): Promise<number> {
  const startedAt = performance.now();
  const correlationId = uuidv7();
  const expiresInSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  const task = await system.begin((tx) =>
    tasks.enqueue(
      tx,
      { nodeId: canary.id, type: TYPE, params: {}, expiresInSeconds, by: BY, correlationId },
      { routine: true },
    ),
  );
  tasks.enqueued(task);
  await tasks.changed(task, { waitMs, until: "end" });
  const ended = await selectTask(system, task.id);
  const took = performance.now() - startedAt;
  if (ended?.status !== "completed") {
    await abandon({ system, tasks }, task.id);
    throw new Error(
      `the round trip through ${canary.name} was not completed: the task is ${ended?.status ?? "gone"}`,
    );
  }
  await system.begin(async (tx) => {
    // As with health probes, nobody needs each of them.
    await tx`DELETE FROM tasks WHERE id = ${task.id}`;
    await record(tx, log, canary, correlationId);
  });
  return took;
}

/** A task that nobody waits for must not expire in the node's queue, which would be a finding about the node. */
async function abandon({ system, tasks }: { system: Sql; tasks: TaskEngine }, id: string): Promise<void> {
  const cancelled = await system.begin(async (tx) => {
    const row = await tasks.cancel(tx, id);
    if (row?.finished_at) await tx`DELETE FROM tasks WHERE id = ${id}`;
    return row;
  });
  if (cancelled) tasks.cancelled(cancelled);
}

type Unaudited = { count: number; first_at: Date; succeeded_at: Date; due: boolean };

/** One audit event for the first, and then one per day for all since. */
async function record(tx: Tx, log: Log, canary: Canary, correlationId: string): Promise<void> {
  const [row] = await tx<Unaudited[]>`
    INSERT INTO canary_round_trips AS c (node_id, succeeded_at, unaudited, first_at) VALUES (${canary.id}, now(), 1, now())
    ON CONFLICT (only_row) DO UPDATE SET node_id = excluded.node_id, succeeded_at = now(), unaudited = c.unaudited + 1,
      first_at = coalesce(c.first_at, now())
    RETURNING unaudited AS count, first_at, succeeded_at, coalesce(audited_at <= now() - ${AUDIT_EVERY}::interval, true) AS due`;
  if (!row?.due) return;
  await recordAudit(tx, log, {
    ...{ orgId: canary.org_id, by: BY, action: "node.probe", result: "allowed", correlationId },
    target: { type: "node", id: canary.id, name: canary.name },
    details: {
      ...{ type: TYPE, count: row.count },
      first_seen_at: row.first_at.toISOString(),
      last_seen_at: row.succeeded_at.toISOString(),
    },
  });
  await tx`UPDATE canary_round_trips SET unaudited = 0, first_at = NULL, audited_at = now()`;
}
