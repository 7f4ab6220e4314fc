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
  mostHours: number;
};

export async function insertRun(tx: Tx, run: NewRun, by: AuditActor): Promise<void> {
  await tx`
    INSERT INTO workflow_runs (id, org_id, workflow_id, version, status, input, user_id, actor_type, actor_id, actor_name, role,
      correlation_id, deadline_at)
    VALUES (${run.id}, ${run.orgId}, ${run.workflowId}, ${run.version}, ${initialState}, ${JSON.stringify(run.input)}::text::json,
      ${run.userId}, ${by.actor_type}, ${by.actor_id}, ${by.actor_name}, ${by.role}, ${run.correlationId},
      now() + ${run.mostHours} * interval '1 hour')`;
}
