// What steps print while they run: stored piece by piece, and bounded for each request. More than that is in the result, as
// far as the agent keeps it.

import type { outputStreams } from "@holdfast/contracts/execution/frames";
import { ConstantSql, type Queryable, rowsOf, type Tx } from "../database/connect.ts";
import { isCurrent, isInFlight } from "./transitions/sql.ts";

export const MOST_CHUNKS = 5_000;
export const MOST_OUTPUT_BYTES = 4 * 1024 * 1024;

export type Chunk = {
  requestId: string;
  agentId: string;
  generation: number;
  seq: number;
  stream: (typeof outputStreams)[number];
  text: string;
};

const printed = rowsOf<Chunk>({
  request_id: ["text", (one) => one.requestId],
  agent_id: ["uuid", (one) => one.agentId],
  generation: ["integer", (one) => one.generation],
  seq: ["integer", (one) => one.seq],
  stream: ["text", (one) => one.stream],
  text: ["text", (one) => one.text],
});

const inFlight = isInFlight();
const current = isCurrent("e", "r");
const room = new ConstantSql(`e.output_chunks < ${MOST_CHUNKS} AND e.output_bytes < ${MOST_OUTPUT_BYTES}`);

/**
 * Returns the ids of the requests of whose output something was stored. What is repeated, not of the current delivery, or
 * too much is left out. Locks: waits for the requests, in the order of their ids.
 */
export async function storeOutput(sql: Queryable, chunks: readonly Chunk[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    WITH printed AS MATERIALIZED (${printed(chunks)}), locked AS MATERIALIZED (
      SELECT e.id, e.org_id, e.request_id, e.generation FROM executions e
      WHERE e.request_id IN (SELECT request_id FROM printed) AND ${inFlight} AND ${room}
      ORDER BY e.id FOR NO KEY UPDATE
    ), stored AS (
      INSERT INTO execution_output (execution_id, org_id, generation, seq, stream, text)
      SELECT e.id, e.org_id, r.generation, r.seq, r.stream, r.text
      FROM printed r JOIN executions e ON e.request_id = r.request_id AND ${current} JOIN locked l ON l.id = e.id
      ON CONFLICT DO NOTHING
      RETURNING execution_id, octet_length(text) AS bytes
    )
    UPDATE executions e SET output_chunks = e.output_chunks + s.chunks, output_bytes = e.output_bytes + s.bytes
    FROM (SELECT execution_id, count(*)::integer AS chunks, sum(bytes)::integer AS bytes FROM stored GROUP BY 1) AS s
    WHERE e.id = s.execution_id
    RETURNING e.id`;
  return rows.map(({ id }) => id);
}

export type OutputRow = { seq: number; stream: (typeof outputStreams)[number]; text: string; at: Date };

const MOST_READ = 500;

/** Of its last delivery. */
export async function selectOutput(tx: Tx, executionId: string, after: number): Promise<OutputRow[]> {
  return tx<OutputRow[]>`
    SELECT o.seq, o.stream, o.text, o.received_at AS at
    FROM execution_output o JOIN executions e ON e.id = o.execution_id AND e.generation = o.generation
    WHERE o.execution_id = ${executionId} AND o.seq > ${after} ORDER BY o.seq LIMIT ${MOST_READ}`;
}
