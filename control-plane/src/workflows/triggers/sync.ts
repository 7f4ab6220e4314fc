// Makes the triggers of a workflow those of its published version.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { WorkflowDocument } from "@holdfast/workflows/document/schema";
import { keyOfTrigger } from "@holdfast/workflows/triggers/due";
import { nextTimes } from "@holdfast/workflows/validate/schedule";
import type { Tx } from "../../database/connect.ts";
import { removeTriggers, upsertTrigger } from "./queries.ts";

export async function syncTriggers(
  tx: Tx,
  workflow: { id: string; org_id: string },
  { triggers = [] }: WorkflowDocument,
): Promise<void> {
  const wanted = triggers.filter((trigger) => trigger.type !== "manual");
  await removeTriggers(tx, workflow.id, wanted.map(keyOfTrigger));
  for (const definition of wanted) {
    const nextAt = definition.type === "cron" ? (nextTimes(definition, new Date(), 1)[0] ?? null) : null;
    await upsertTrigger(tx, workflow, { id: uuidv7(), key: keyOfTrigger(definition), definition, nextAt });
  }
}
