// What hosts are ordered to do about images: fetch one, or remove one that is retired. Decided from stored rows, as leases are: a task
// is enqueued in the transaction that records it, and replicas that find the same exclude each other by the row of the order.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import { ApiError } from "@holdfast/contracts/errors";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { type AuditActor, systemActor } from "../audit/record.ts";
import type { Queryable, Sql, Tx } from "../database/connect.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { TaskRow } from "../tasks/queries.ts";

type Tasks = Pick<TaskEngine, "enqueue" | "enqueued">;
type Parts = { system: Sql; tasks: Tasks; log: Log; staleAfterSeconds: number };

export type ImageOrder = {
  node_id: string;
  image_id: string;
  action: "fetch" | "remove";
  /** Null: it failed. */
  task_id: string | null;
  failure: TaskFailure | null;
  /** It failed, and is not tried again by itself before. */
  retry_at: Date | null;
  received_bytes: number | null;
  total_bytes: number | null;
};

export async function selectImageOrders(db: Queryable, orgId: string): Promise<ImageOrder[]> {
  return db<ImageOrder[]>`
    SELECT o.node_id, o.image_id, o.action, o.task_id, o.failure, o.retry_at,
      (t.progress #>> '{received_bytes}')::float8 AS received_bytes, (t.progress #>> '{total_bytes}')::float8 AS total_bytes
    FROM vm_image_orders o LEFT JOIN tasks t ON t.id = o.task_id WHERE o.org_id = ${orgId}`;
}

/** Null: not known. */
export function percentOf({ received_bytes, total_bytes }: ImageOrder): number | null {
  if (received_bytes === null || !total_bytes) return null;
  return Math.min(100, Math.floor((received_bytes / total_bytes) * 100));
}

type Wanted = {
  orgId: string;
  nodeId: string;
  image: { id: string; sha256: string; url: string | null };
  action: ImageOrder["action"];
  by: AuditActor;
  correlationId: string;
};

/** Undefined: one is outstanding, or it failed and has to wait. `again`: a person wants it, so it does not wait. */
export async function orderImageTask(
  tx: Tx,
  tasks: Tasks,
  { orgId, nodeId, image, action, by, correlationId }: Wanted,
  { again = false } = {},
): Promise<TaskRow | undefined> {
  await tx`SELECT FROM vm_hosts WHERE node_id = ${nodeId} FOR NO KEY UPDATE`;
  const [present] = await tx<{ task_id: string | null; waits: boolean }[]>`
    SELECT task_id, coalesce(retry_at > now(), false) AS waits FROM vm_image_orders
    WHERE node_id = ${nodeId} AND image_id = ${image.id}`;
  if (present && (present.task_id !== null || (present.waits && !again))) return undefined;
  const { id, sha256, url } = image;
  const wanted =
    action === "fetch"
      ? { type: "vm.image_fetch", params: { image: { id, sha256 }, url } }
      : { type: "vm.image_remove", params: { image: { id, sha256 } } };
  const task = await tasks.enqueue(tx, { ...wanted, nodeId, by, correlationId, details: { image_id: id } });
  await tx`
    INSERT INTO vm_image_orders (node_id, org_id, image_id, action, sha256, task_id)
    VALUES (${nodeId}, ${orgId}, ${id}, ${action}, ${sha256}, ${task.id})
    ON CONFLICT (node_id, image_id) DO UPDATE SET action = excluded.action, sha256 = excluded.sha256,
      task_id = excluded.task_id, failure = NULL, retry_at = NULL`;
  return task;
}

const BY = systemActor("leases");

/** For a lease that waits for it. */
export async function orderFetch(
  { system, tasks, log }: Omit<Parts, "staleAfterSeconds">,
  wanted: Omit<Wanted, "by" | "correlationId" | "action">,
): Promise<boolean> {
  try {
    const task = await system.begin((tx) =>
      orderImageTask(tx, tasks, { ...wanted, action: "fetch", by: BY, correlationId: uuidv7() }),
    );
    if (task) tasks.enqueued(task);
    return task !== undefined;
  } catch (error) {
    // The host takes no tasks now; the next turn chooses again.
    if (!(error instanceof ApiError))
      log.warn({ err: error, image_id: wanted.image.id, node_id: wanted.nodeId }, "could not order an image");
    return false;
  }
}

/** Settles what ended, and orders the removal of retired images that their hosts have fetched. */
export async function keepImages(parts: Parts): Promise<{ settled: number; removals: number }> {
  return { settled: await settleOrders(parts.system), removals: await orderRemovals(parts) };
}

type Ended = { node_id: string; image_id: string; status: TaskStatus | null; failure: TaskFailure | null };

const LOST: TaskFailure = {
  code: "task_lost",
  message: "The host did not report what became of it.",
  next_step: "Check the host with `holdfast host show <host>`.",
};
/** Only a person can change what led to these. */
const lasting: ReadonlySet<string> = new Set([
  ...["vm_image_source_refused", "vm_image_source_failed", "vm_image_digest_wrong", "vm_image_unusable"],
  ...["vm_image_not_replaced", "vm_host_unavailable"],
]);
const RETRY_SECONDS = { first: 30, most: 3600 };

async function settleOrders(system: Sql): Promise<number> {
  return system.begin(async (tx) => {
    const rows = await tx<Ended[]>`
      SELECT o.node_id, o.image_id, t.status, t.failure FROM vm_image_orders o LEFT JOIN tasks t ON t.id = o.task_id
      WHERE o.task_id IS NOT NULL AND (t.id IS NULL OR t.finished_at IS NOT NULL)
      ORDER BY o.node_id, o.image_id LIMIT 100 FOR NO KEY UPDATE OF o SKIP LOCKED`;
    for (const { node_id, image_id, status, failure } of rows) {
      if (status === "completed") {
        await tx`DELETE FROM vm_image_orders WHERE node_id = ${node_id} AND image_id = ${image_id}`;
        continue;
      }
      const why = failure ?? LOST;
      const { first, most } = RETRY_SECONDS;
      await tx`
        UPDATE vm_image_orders SET task_id = NULL, failures = failures + 1, failure = ${tx.json(why)},
          retry_at = now() + interval '1 second' *
            ${lasting.has(why.code) ? tx`${most}::int` : tx`least(${most}::int, ${first}::int * 2 ^ least(failures, 10))`}
        WHERE node_id = ${node_id} AND image_id = ${image_id}`;
    }
    return rows.length;
  });
}

type Retired = { org_id: string; node_id: string; id: string; sha256: string };

/** Hosts say which images they fetched; others stay. An image that was retired has no lease. */
async function orderRemovals({ system, tasks, log, staleAfterSeconds }: Parts): Promise<number> {
  const retired = await system<Retired[]>`
    SELECT i.org_id, h.node_id, i.id, r ->> 'sha256' AS sha256
    FROM vm_images i JOIN vm_hosts h ON h.org_id = i.org_id JOIN nodes n ON n.id = h.node_id
      JOIN node_presence p ON p.node_id = h.node_id CROSS JOIN LATERAL json_array_elements(p.heartbeat #> '{vm_host,images}') AS r
    WHERE i.retired_at IS NOT NULL AND r ->> 'id' = i.id AND (r ->> 'fetched')::boolean AND r ->> 'sha256' IS NOT NULL
      AND (r ->> 'references')::int = 0 AND n.status = 'active' AND n.revoked_at IS NULL
      AND p.heartbeat_at > now() - ${staleAfterSeconds} * interval '1 second'
      AND NOT EXISTS (SELECT FROM vm_leases l WHERE l.org_id = i.org_id AND l.image_id = i.id AND l.finished_at IS NULL)
      AND NOT EXISTS (SELECT FROM vm_image_orders o WHERE o.node_id = h.node_id AND o.image_id = i.id
        AND (o.task_id IS NOT NULL OR o.retry_at > now()))
    ORDER BY h.node_id, i.id LIMIT 100`;
  let ordered = 0;
  for (const { org_id: orgId, node_id: nodeId, id, sha256 } of retired) {
    try {
      const task = await system.begin((tx) =>
        orderImageTask(tx, tasks, {
          ...{ orgId, nodeId, image: { id, sha256, url: null }, action: "remove" },
          ...{ by: BY, correlationId: uuidv7() },
        }),
      );
      if (!task) continue;
      tasks.enqueued(task);
      ordered += 1;
    } catch (error) {
      if (!(error instanceof ApiError))
        log.warn({ err: error, image_id: id, node_id: nodeId }, "could not order the removal of an image");
    }
  }
  return ordered;
}
