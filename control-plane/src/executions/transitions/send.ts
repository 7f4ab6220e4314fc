// Marks requests as sent to a connection of their agent, before the frames are written, and returns them.
//
// Locks: waits for the requests, in the order of their ids.

import type { Queryable } from "../../database/connect.ts";
import { isOneOf, statesWhere } from "../../mechanisms/transition-sql.ts";
import type { OfferRow } from "../queries.ts";
import { isInFlight } from "./sql.ts";
import { executionTable } from "./table.ts";

const inFlight = isInFlight();
/** What the agent has accepted is on its disk, and is not sent again. */
const notAccepted = isOneOf(
  "e.status",
  statesWhere(executionTable, "accept", (outcome) => typeof outcome === "object"),
);

export type Connection = {
  agentId: string;
  sessionId: string;
  /** 0: of another system, which is sent a request once. */
  protocolVersion: number;
  /** Null: the agent names none. */
  journalId: string | null;
};

/**
 * `again`: a new connection of an agent that verifies signatures and knows what it has; what its journal was sent before and
 * does not hold is sent again. Another journal of the agent may have run it without this one knowing. Requests of its time
 * without a protocol version have no signature, and are not sent again either.
 */
export async function markSent(
  sql: Queryable,
  { agentId, sessionId, protocolVersion, journalId }: Connection,
  options: { again: boolean; holding: readonly string[] },
): Promise<OfferRow[]> {
  const resend = options.again && protocolVersion > 0;
  const isUnheld = sql`e.signature IS NOT NULL AND e.session_id <> ${sessionId}
    AND e.journal_id IS NOT DISTINCT FROM ${journalId}::uuid`;
  return sql<OfferRow[]>`
    WITH due AS MATERIALIZED (
      SELECT e.id FROM executions e
      WHERE ${inFlight} AND ${notAccepted} AND e.agent_id = ${agentId} AND e.cancel_requested_at IS NULL
        AND e.deadline_at > now() AND e.request_id <> ALL (${[...options.holding]}::text[])
        AND (e.session_id IS NULL ${resend ? sql`OR ${isUnheld}` : sql``})
      ORDER BY e.id FOR NO KEY UPDATE
    )
    UPDATE executions e SET session_id = ${sessionId}, journal_id = ${journalId}::uuid,
      -- Without both it is never sent again, also if the agent is replaced by one that verifies signatures.
      sealed_secret = CASE WHEN ${protocolVersion > 0} THEN e.sealed_secret END,
      signature = CASE WHEN ${protocolVersion > 0} THEN e.signature END
    FROM due, executions old WHERE e.id = due.id AND old.id = due.id
    RETURNING e.id, e.org_id, e.request_id, e.agent_id, e.generation, e.user_id, e.kind, e.payload, old.sealed_secret,
      e.signature, e.timeout_ms, e.deadline_at, e.correlation_id, e.journal_id`;
}

/** For an agent that verifies signatures, and did not when the request was given to it. */
export async function storeSignature(sql: Queryable, id: string, signature: string): Promise<void> {
  await sql`UPDATE executions SET signature = ${signature} WHERE id = ${id}`;
}
