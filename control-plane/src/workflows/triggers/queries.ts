// Statements of triggers. Those with a Tx run confined to one organization, as a role that cannot read the hashes of tokens.

import type { WorkflowTrigger } from "@holdfast/contracts/endpoints/workflows";
import type { Trigger } from "@holdfast/workflows/document/schema";
import type { Queryable, Tx } from "../../database/connect.ts";

type Definition = Exclude<Trigger, { type: "manual" }>;

export type TriggerRow = {
  id: string;
  workflow_id: string;
  workflow_name: string;
  type: "cron" | "webhook";
  definition: Definition;
  enabled: boolean;
  next_at: Date | null;
  last_at: Date | null;
  last_run_id: string | null;
  token_at: Date | null;
};

const columns = (db: Queryable) => db`
  t.id, t.workflow_id, w.name AS workflow_name, t.type, t.definition, t.enabled, t.next_at, t.last_at, t.last_run_id, t.token_at`;

export const webhookPath = (id: string) => `/v1/hooks/${id}`;

export function toTrigger(row: TriggerRow): WorkflowTrigger {
  const { definition } = row;
  const cron = definition.type === "cron" ? definition : undefined;
  const webhook = definition.type === "webhook" ? definition : undefined;
  return {
    ...{ id: row.id, type: row.type, enabled: row.enabled, last_run_id: row.last_run_id },
    ...{ last_at: row.last_at?.toISOString() ?? null, next_at: row.next_at?.toISOString() ?? null },
    schedule: cron?.schedule ?? null,
    timezone: cron ? (cron.timezone ?? "UTC") : null,
    missed: cron ? (cron.missed ?? "once") : null,
    path: webhook ? webhookPath(row.id) : null,
    secret: webhook?.secret ?? null,
    token_created_at: row.token_at?.toISOString() ?? null,
  };
}

export async function selectTriggers(tx: Tx, workflowId: string): Promise<TriggerRow[]> {
  return tx<TriggerRow[]>`
    SELECT ${columns(tx)} FROM workflow_triggers t JOIN workflows w ON w.id = t.workflow_id
    WHERE t.workflow_id = ${workflowId} AND t.removed_at IS NULL ORDER BY t.type, t.id`;
}

/** Locked until the transaction ends. */
export async function selectTrigger(tx: Tx, id: string): Promise<TriggerRow | undefined> {
  const [row] = await tx<TriggerRow[]>`
    SELECT ${columns(tx)} FROM workflow_triggers t JOIN workflows w ON w.id = t.workflow_id
    WHERE t.id = ${id} AND t.removed_at IS NULL FOR NO KEY UPDATE OF t`;
  return row;
}

export async function updateEnabled(
  tx: Tx,
  id: string,
  change: { enabled: boolean; nextAt: Date | null },
): Promise<void> {
  await tx`UPDATE workflow_triggers SET enabled = ${change.enabled}, next_at = ${change.nextAt} WHERE id = ${id}`;
}

export async function updateToken(tx: Tx, id: string, hash: Buffer): Promise<void> {
  await tx`UPDATE workflow_triggers SET token_hash = ${hash}, token_at = now() WHERE id = ${id}`;
}

export async function removeTriggers(tx: Tx, workflowId: string, keep: readonly string[] = []): Promise<void> {
  await tx`
    UPDATE workflow_triggers SET removed_at = now(), next_at = NULL, token_hash = NULL, token_at = NULL
    WHERE workflow_id = ${workflowId} AND removed_at IS NULL AND key <> ALL (${[...keep]}::text[])`;
}

export type NewTrigger = { id: string; key: string; definition: Definition; nextAt: Date | null };

/** One that the workflow has already keeps its id, token and next time; one that it had before gets the next time from now on. */
export async function upsertTrigger(
  tx: Tx,
  { id: workflowId, org_id: orgId }: { id: string; org_id: string },
  { id, key, definition, nextAt }: NewTrigger,
): Promise<void> {
  await tx`
    INSERT INTO workflow_triggers AS t (id, org_id, workflow_id, key, type, definition, next_at)
    VALUES (${id}, ${orgId}, ${workflowId}, ${key}, ${definition.type}, ${JSON.stringify(definition)}::text::json, ${nextAt})
    ON CONFLICT (workflow_id, key) DO UPDATE SET definition = excluded.definition, removed_at = NULL,
      next_at = CASE WHEN NOT t.enabled THEN NULL WHEN t.removed_at IS NULL THEN t.next_at ELSE excluded.next_at END`;
}
