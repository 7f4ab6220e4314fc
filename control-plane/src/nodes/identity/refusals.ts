// Refused certificates of nodes: stored for the node's page, and in the audit once per certificate and reason, then at
// most once an hour. An agent that is locked out keeps retrying.

import type { ErrorCode } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import { type AuditActor, recordAudit } from "../../audit/record.ts";
import type { Sql } from "../../database/connect.ts";

export type NodeRefusal = { nodeId: string; serial: string; code: ErrorCode; correlationId: string };

export type Refusals = {
  saw(refusal: NodeRefusal): void;
  settled(): Promise<void>;
};

/** The page may lag this much: a node that is locked out does not get a statement for each request. */
const NOTED_EVERY_MS = 10_000;
const AUDITED_EVERY = "1 hour";
/** Bounded in practice by the number of expired certificates. */
const MOST_REMEMBERED = 10_000;

export function openRefusals(system: Sql, log: Log, now: () => number = () => performance.now()): Refusals {
  const writing = new Set<Promise<void>>();
  const notedAt = new Map<string, number>();
  return {
    saw(refusal) {
      const key = `${refusal.nodeId} ${refusal.serial} ${refusal.code}`;
      const before = notedAt.get(key);
      if (before !== undefined && now() - before < NOTED_EVERY_MS) return;
      notedAt.delete(key);
      for (const oldest of notedAt.keys().take(notedAt.size >= MOST_REMEMBERED ? 1 : 0)) notedAt.delete(oldest);
      notedAt.set(key, now());
      const written: Promise<void> = note(system, log, refusal)
        .catch((error: unknown) => log.warn({ err: error, node_id: refusal.nodeId }, "could not record a refusal"))
        .finally(() => writing.delete(written));
      writing.add(written);
    },
    settled: async () => void (await Promise.all(writing)),
  };
}

type Noted = { org_id: string; name: string; audit: boolean };

/** Writes nothing about a node that does not exist. */
async function note(system: Sql, log: Log, { nodeId, serial, code, correlationId }: NodeRefusal): Promise<void> {
  await system.begin(async (tx) => {
    const isNews = tx`(r.serial <> excluded.serial OR r.code <> excluded.code
      OR r.audited_at <= now() - ${AUDITED_EVERY}::interval)`;
    const [noted] = await tx<Noted[]>`
      INSERT INTO node_refusals AS r (node_id, org_id, serial, code, correlation_id)
      SELECT id, org_id, ${serial}, ${code}, ${correlationId} FROM nodes WHERE id = ${nodeId}
      ON CONFLICT (node_id) DO UPDATE SET at = now(), serial = excluded.serial, code = excluded.code,
        correlation_id = CASE WHEN ${isNews} THEN excluded.correlation_id ELSE r.correlation_id END,
        audited_at = CASE WHEN ${isNews} THEN now() ELSE r.audited_at END
      RETURNING r.org_id, (SELECT name FROM nodes WHERE id = r.node_id) AS name, r.audited_at = now() AS audit`;
    if (!noted?.audit) return;
    const by: AuditActor = { actor_type: "node", actor_id: nodeId, actor_name: noted.name, role: "node" };
    await recordAudit(tx, log, {
      ...{ orgId: noted.org_id, by, correlationId, reason: code, result: "denied" },
      action: "node.connect",
      target: { type: "node", id: nodeId, name: noted.name },
      details: { serial },
    });
  });
}
