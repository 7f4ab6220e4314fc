// A request that no agent took is dispatched anew: it waits for an agent again, with what was sent this time.
//
// Locks: waits for the rows, in the order of their ids.

import type { Queryable } from "../../database/connect.ts";
import { auditDispatches, type MadeRequest, type NewRequest, requestedAgain } from "./create.ts";
import { isChangedBy, statusAfter } from "./sql.ts";

const leaves = isChangedBy("again");
const newStatus = statusAfter("again");

/** Those that are not among the rows have changed meanwhile. */
export async function requestAgain(sql: Queryable, requests: readonly NewRequest[]): Promise<MadeRequest[]> {
  return sql<MadeRequest[]>`
    WITH requested AS MATERIALIZED (${requestedAgain(requests)}), locked AS MATERIALIZED (
      SELECT e.id AS execution_id, a.* FROM requested a
      JOIN executions e ON e.request_id = a.request_id AND e.org_id = a.org_id AND e.kind = a.kind
      WHERE ${leaves} ORDER BY e.id FOR NO KEY UPDATE OF e
    ), given AS (
      UPDATE executions e SET status = ${newStatus}, revision = e.revision + 1, finished_at = NULL, error = NULL,
        payload = a.payload::json, output_erased_at = NULL, sealed_secret = a.sealed_secret, secret_id = a.secret_id,
        secret_version = a.secret_version, shell = a.shell,
        connector = a.connector, selector_tag = a.selector_tag, selector_agent_id = a.selector_agent_id,
        timeout_ms = a.timeout_ms, wait_until = now() + a.wait_ms * interval '1 millisecond', declined_by = '{}',
        user_id = a.user_id, asked_elsewhere = e.asked_elsewhere OR e.asked_by <> a.asked_by
      FROM locked a WHERE e.id = a.execution_id
      RETURNING e.id, e.request_id, e.agent_id, e.wait_until
    ), audited AS (${auditDispatches})
    SELECT id, request_id, agent_id, wait_until FROM given`;
}

/** Another gateway waits for the requests, too, and is to be told of their ends. */
export async function markAskedElsewhere(
  sql: Queryable,
  ids: readonly string[],
  gatewayId: string,
): Promise<void> {
  await sql`
    UPDATE executions SET asked_elsewhere = true
    WHERE id IN (
      SELECT id FROM executions WHERE id = ANY (${[...ids]}::uuid[]) AND NOT asked_elsewhere AND asked_by <> ${gatewayId}
      ORDER BY id FOR NO KEY UPDATE)`;
}
