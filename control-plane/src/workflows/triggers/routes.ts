// Triggers over HTTP: schedules and webhooks are enabled and disabled, and tokens of webhooks created.

import { rotateWorkflowTrigger, setWorkflowTrigger } from "@holdfast/contracts/endpoints/workflow-triggers";
import { ApiError } from "@holdfast/contracts/errors";
import { nextTimes } from "@holdfast/workflows/validate/schedule";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import { makeSecret } from "../../mechanisms/secrets.ts";
import { selectTrigger, type TriggerRow, toTrigger, updateEnabled, updateToken, webhookPath } from "./queries.ts";

export function triggerRoutes(api: ApiContext): void {
  orgRoute(api, setWorkflowTrigger, async ({ tx, params, body, touched, afterCommit }) => {
    const row = await requireTrigger(tx, params.trigger_id);
    const { definition } = row;
    if (row.enabled !== body.enabled) {
      const nextAt = body.enabled && definition.type === "cron" ? nextTimes(definition, new Date(), 1)[0] : null;
      await updateEnabled(tx, row.id, { enabled: body.enabled, nextAt: nextAt ?? null });
    }
    touched(targetOf(row), { type: row.type, enabled: body.enabled });
    afterCommit(() => api.signals.publish("workflow_trigger", [row.workflow_id]));
    return toTrigger(await requireTrigger(tx, row.id));
  });

  orgRoute(api, rotateWorkflowTrigger, async ({ tx, params, baseUrl, touched }) => {
    const row = await requireTrigger(tx, params.trigger_id);
    const { definition } = row;
    if (definition.type !== "webhook" || definition.secret !== undefined)
      throw new ApiError("trigger_has_no_token");
    const { secret: token, hash } = makeSecret("hook");
    await updateToken(tx, row.id, hash);
    touched(targetOf(row), { workflow_id: row.workflow_id });
    const url = new URL(webhookPath(row.id), baseUrl);
    url.username = "hook";
    url.password = token;
    return { trigger: toTrigger(await requireTrigger(tx, row.id)), token, url: url.href };
  });
}

const targetOf = ({ id, workflow_name: name }: TriggerRow) => ({ type: "workflow_trigger", id, name });

async function requireTrigger(tx: Tx, id: string): Promise<TriggerRow> {
  const row = await selectTrigger(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}
