// Stores a new run, which starts when its organization has room. The audit event is that of the request.

import type { AuditActor } from "../../../audit/record.ts";
import type { Tx } from "../../../database/connect.ts";
import { initialState } from "./table.ts";

export type NewRun = {
  id: string;
  orgId: string;
  workflowId: string;
  version: number;
  input: unknown;
  userId: string;
  correlationId: string;
  /** Workers with this queue continue it. */
  queue: string;
  /** What started it, if nobody did. A time or a delivery of a trigger starts one run. */
  trigger?: { id: string; scheduledAt: Date } | { id: string; deliveryId: string | null };
};

/** A run that has not ended by then never will. */
export const MOST_RUN_HOURS = 24 * 30;

/** False: the trigger has started a run for this before. */
export async function insertRun(tx: Tx, run: NewRun, by: AuditActor): Promise<boolean> {
  const { trigger } = run;
  const { count } = await tx`
    INSERT INTO workflow_runs (id, org_id, workflow_id, version, status, input, user_id, actor_type, actor_id, actor_name, role,
      correlation_id, deadline_at, queue, trigger_id, scheduled_at, delivery_id)
    VALUES (${run.id}, ${run.orgId}, ${run.workflowId}, ${run.version}, ${initialState}, ${JSON.stringify(run.input)}::text::json,
      ${run.userId}, ${by.actor_type}, ${by.actor_id}, ${by.actor_name}, ${by.role}, ${run.correlationId},
      now() + ${MOST_RUN_HOURS} * interval '1 hour', ${run.queue}, ${trigger?.id ?? null},
      ${trigger && "scheduledAt" in trigger ? trigger.scheduledAt : null},
      ${trigger && "deliveryId" in trigger ? trigger.deliveryId : null})
    ON CONFLICT DO NOTHING`;
  return count === 1;
}
