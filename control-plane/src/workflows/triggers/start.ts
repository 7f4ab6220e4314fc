// Starts a run for a trigger, on behalf of the organization's service user: run, trigger and audit event are one transaction.

import { MOST_OPEN_TRIGGERED_RUNS } from "@holdfast/contracts/endpoints/runs";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit } from "../../audit/record.ts";
import type { Tx } from "../../database/connect.ts";
import { insertRun, type NewRun } from "../runs/transitions/create.ts";
import { serviceUser } from "../service-user.ts";

/** Read by the system role, with what a run of its workflow needs. */
export type LiveTrigger = {
  id: string;
  org_id: string;
  workflow_id: string;
  workflow_name: string;
  published_version: number;
  service_user_id: string;
};

type Started = { input: unknown; correlationId: string; queue: string; by: NonNullable<NewRun["trigger"]> };

/** Undefined: it has started a run for this time or delivery before. */
export async function startTriggered(
  tx: Tx,
  log: Log,
  trigger: LiveTrigger,
  { input, correlationId, queue, by }: Started,
): Promise<string | undefined> {
  const { org_id: orgId, workflow_id: workflowId, published_version: version } = trigger;
  const id = uuidv7();
  const actor = serviceUser(trigger.service_user_id);
  const run = { id, orgId, workflowId, version, input, userId: actor.actor_id, correlationId, queue, trigger: by };
  if (!(await insertRun(tx, run, actor))) return undefined;
  await tx`UPDATE workflow_triggers SET last_at = now(), last_run_id = ${id} WHERE id = ${trigger.id}`;
  await recordAudit(tx, log, {
    ...{ orgId, by: actor, action: "run.trigger", result: "allowed", correlationId },
    target: { type: "run", id, name: trigger.workflow_name },
    details: {
      ...{ workflow_id: workflowId, version, trigger_id: trigger.id, service_user_id: actor.actor_id },
      ...("scheduledAt" in by
        ? { scheduled_at: by.scheduledAt.toISOString() }
        : by.deliveryId === null
          ? {}
          : { delivery_id: by.deliveryId }),
    },
  });
  return id;
}

/** How many runs of a trigger have not ended, up to the limit. */
export async function requireRoom(tx: Tx, triggerId: string): Promise<void> {
  const [row] = await tx<{ open: number }[]>`
    SELECT count(*)::int AS open FROM (
      SELECT FROM workflow_runs WHERE trigger_id = ${triggerId} AND finished_at IS NULL LIMIT ${MOST_OPEN_TRIGGERED_RUNS}) AS open`;
  if ((row?.open ?? 0) >= MOST_OPEN_TRIGGERED_RUNS) throw new ApiError("trigger_backlog");
}
