// Refused certificates of nodes in the audit. An agent that is locked out keeps retrying: what is repeated is summed up.

import type { ErrorCode } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import type { FailureAudit } from "../../audit/failures/failures.ts";
import type { AuditActor } from "../../audit/record.ts";
import type { Sql } from "../../database/connect.ts";

export type NodeRefusal = { nodeId: string; serial: string; code: ErrorCode; correlationId: string };

export type Refusals = {
  saw(refusal: NodeRefusal): void;
  settled(): Promise<void>;
};

/** A node that is locked out does not get a statement for each request. */
const NOTED_EVERY_MS = 10_000;
/** Bounded in practice by the number of expired certificates. */
const MOST_REMEMBERED = 10_000;

export function openRefusals(
  { system, failures, log }: { system: Sql; failures: Pick<FailureAudit, "failed">; log: Log },
  now: () => number = () => performance.now(),
): Refusals {
  const writing = new Set<Promise<void>>();
  /** With how many were not written since. */
  const noted = new Map<string, { at: number; skipped: number }>();
  return {
    saw(refusal) {
      const key = `${refusal.nodeId} ${refusal.serial} ${refusal.code}`;
      const before = noted.get(key);
      if (before !== undefined && now() - before.at < NOTED_EVERY_MS) {
        before.skipped += 1;
        return;
      }
      noted.delete(key);
      for (const oldest of noted.keys().take(noted.size >= MOST_REMEMBERED ? 1 : 0)) noted.delete(oldest);
      noted.set(key, { at: now(), skipped: 0 });
      const written: Promise<void> = audit({ system, failures }, refusal, 1 + (before?.skipped ?? 0))
        .catch((error: unknown) => log.warn({ err: error, node_id: refusal.nodeId }, "could not record a refusal"))
        .finally(() => writing.delete(written));
      writing.add(written);
    },
    settled: async () => void (await Promise.all(writing)),
  };
}

/** Writes nothing about a node that does not exist. */
async function audit(
  { system, failures }: { system: Sql; failures: Pick<FailureAudit, "failed"> },
  { nodeId, serial, code, correlationId }: NodeRefusal,
  times: number,
): Promise<void> {
  await system.begin(async (tx) => {
    const [node] = await tx<{ org_id: string; name: string }[]>`
      SELECT org_id, name FROM nodes WHERE id = ${nodeId}`;
    if (!node) return;
    const by: AuditActor = { actor_type: "node", actor_id: nodeId, actor_name: node.name, role: "node" };
    await failures.failed(tx, {
      ...{ orgId: node.org_id, by, correlationId, reason: code, result: "denied", credentialId: serial, times },
      action: "node.connect",
      target: { type: "node", id: nodeId, name: node.name },
      details: { serial },
    });
  });
}
