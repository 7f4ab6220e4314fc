// The safety loop: asks each host about once a minute for what it has beside its VMs, and to remove what carries its own tag and
// belongs to no VM. Which VMs have a lease is not part of the request: a VM that is launched meanwhile would look like one without.
// VMs without a lease are found from heartbeats (follow.ts).

import { ApiError } from "@holdfast/contracts/errors";
import type { VmInventory } from "@holdfast/contracts/node/vm-host";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { INVENTORY_EVERY_SECONDS } from "./settings.ts";

const BY = systemActor("leases");
const MOST_IN_A_TURN = 100;

type Parts = { system: Sql; tasks: Pick<TaskEngine, "enqueue" | "enqueued">; log: Log; staleAfterSeconds: number };

export async function takeInventories(parts: Parts): Promise<{ stored: number; asked: number }> {
  return { stored: await storeEnded(parts), asked: await askDue(parts) };
}

type Ended = {
  node_id: string;
  org_id: string;
  name: string;
  task_id: string;
  result: VmInventory | null;
  ended_at: Date;
};

/** Keeps what the last inventory found, and removes its task: there is one a minute. */
async function storeEnded({ system, log }: Parts): Promise<number> {
  return system.begin(async (tx) => {
    const rows = await tx<Ended[]>`
      SELECT h.node_id, h.org_id, n.name, h.inventory_task_id AS task_id, t.result, t.finished_at AS ended_at
      FROM vm_hosts h JOIN nodes n ON n.id = h.node_id JOIN tasks t ON t.id = h.inventory_task_id
      WHERE t.finished_at IS NOT NULL ORDER BY h.node_id LIMIT ${MOST_IN_A_TURN} FOR NO KEY UPDATE OF h SKIP LOCKED`;
    for (const row of rows) await store(tx, log, row);
    return rows.length;
  });
}

async function store(
  tx: Tx,
  log: Log,
  { node_id, org_id, name, task_id, result, ended_at }: Ended,
): Promise<void> {
  const strays = result?.strays ?? null;
  await tx`
    UPDATE vm_hosts SET inventory_task_id = NULL,
      inventory_at = ${strays === null ? tx`inventory_at` : ended_at},
      strays = ${strays === null ? tx`strays` : tx.json(strays)}
    WHERE node_id = ${node_id}`;
  await tx`DELETE FROM tasks WHERE id = ${task_id}`;
  const removed = strays?.filter(({ action }) => action === "removed") ?? [];
  if (removed.length === 0) return;
  await recordAudit(tx, log, {
    ...{ orgId: org_id, by: BY, action: "host.clean", result: "allowed", correlationId: uuidv7() },
    target: { type: "node", id: node_id, name },
    details: { removed: removed.map(({ kind, name: what, why }) => ({ kind, name: what, why })) },
  });
}

/** A claim stores the time of the request: a second replica sees it and skips the host. */
async function askDue({ system, tasks, log, staleAfterSeconds }: Parts): Promise<number> {
  const due = await system<{ node_id: string }[]>`
    UPDATE vm_hosts h SET inventory_asked_at = now()
    WHERE h.node_id IN (
      SELECT d.node_id FROM vm_hosts d JOIN nodes n ON n.id = d.node_id JOIN node_presence p ON p.node_id = d.node_id
      WHERE n.status = 'active' AND n.revoked_at IS NULL AND p.heartbeat -> 'vm_host' IS NOT NULL
        AND p.heartbeat_at > now() - ${staleAfterSeconds} * interval '1 second'
        AND (d.inventory_asked_at IS NULL OR d.inventory_asked_at <= now() - ${INVENTORY_EVERY_SECONDS} * interval '1 second')
        AND NOT EXISTS (SELECT FROM tasks t WHERE t.id = d.inventory_task_id)
      ORDER BY d.node_id LIMIT ${MOST_IN_A_TURN} FOR NO KEY UPDATE OF d SKIP LOCKED)
    RETURNING h.node_id`;
  let asked = 0;
  for (const { node_id: nodeId } of due) {
    try {
      const task = await system.begin(async (tx) => {
        const params = { expected: null, remove: true };
        const wanted = { nodeId, type: "vm.inventory", params, priority: 0, by: BY, correlationId: uuidv7() };
        const made = await tasks.enqueue(tx, wanted, { routine: true });
        await tx`UPDATE vm_hosts SET inventory_task_id = ${made.id} WHERE node_id = ${nodeId}`;
        return made;
      });
      tasks.enqueued(task);
      asked += 1;
    } catch (error) {
      if (!(error instanceof ApiError))
        log.warn({ err: error, node_id: nodeId }, "could not ask a host for its inventory");
    }
  }
  return asked;
}
