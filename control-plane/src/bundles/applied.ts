// What a node reports about a bundle that was applied on its host: once in the audit, under the bundle's correlation id.
// Only the node that was recovered with it can report it.

import type { AppliedBundle } from "@holdfast/contracts/node/recovery-bundle";
import type { Log } from "@holdfast/service/log";
import { recordAudit } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";

type Marked = { seq: number; correlation_id: string; name: string };

/** The agent repeats it until a heartbeat was answered; a report that is already known, or of no bundle, changes nothing. */
export async function recordApplied(
  { system, log }: { system: Sql; log: Log },
  node: { id: string; orgId: string },
  { id, applied_at, before, after }: AppliedBundle,
): Promise<void> {
  await system.begin(async (tx) => {
    const [marked] = await tx<Marked[]>`
      UPDATE recovery_bundles b SET applied_at = ${applied_at}::timestamptz, applied = ${tx.json({ before, after })}
      FROM nodes n
      WHERE b.id = ${id} AND b.node_id = ${node.id} AND n.id = b.node_id AND b.used_at IS NOT NULL AND b.applied_at IS NULL
      RETURNING b.seq, b.correlation_id, n.name`;
    if (!marked) return;
    await recordAudit(tx, log, {
      ...{ orgId: node.orgId, action: "node.bundle_apply", result: "allowed" },
      by: { actor_type: "node", actor_id: node.id, actor_name: marked.name, role: "node" },
      target: { type: "node", id: node.id, name: marked.name },
      correlationId: marked.correlation_id,
      details: { bundle_id: id, seq: marked.seq, applied_at, before, after },
    });
  });
}
