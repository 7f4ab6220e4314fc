// Compares how many requests each agent has with how many it is counted to have, and corrects the count. It should find
// nothing: every statement that gives or ends a request counts, too. What it finds is logged.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { isInFlight } from "./transitions/sql.ts";

const inFlight = isInFlight();

export async function recountInFlight(
  system: Sql,
  signals: Pick<Signals, "publish">,
  log: Log,
): Promise<{ corrected: number }> {
  const suspects = await system<{ id: string }[]>`
    SELECT g.id FROM execution_agents g LEFT JOIN (
      SELECT e.agent_id, count(*)::integer AS n FROM executions e WHERE ${inFlight} GROUP BY e.agent_id
    ) AS c ON c.agent_id = g.id
    WHERE g.in_flight <> coalesce(c.n, 0)`;
  let corrected = 0;
  for (const { id } of suspects) {
    // Whoever gives or ends a request locks the agent first: what is counted under the lock is exact.
    const changed = await system.begin(async (tx) => {
      await tx`SELECT FROM execution_agents WHERE id = ${id} FOR NO KEY UPDATE`;
      const [row] = await tx<{ before: number; after: number }[]>`
        UPDATE execution_agents g SET in_flight = c.n FROM execution_agents old, (
          SELECT count(*)::integer AS n FROM executions e WHERE ${inFlight} AND e.agent_id = ${id}) AS c
        WHERE g.id = ${id} AND old.id = g.id AND g.in_flight <> c.n
        RETURNING old.in_flight AS before, c.n AS after`;
      return row;
    });
    if (!changed) continue;
    corrected += 1;
    log.warn(
      { agent_id: id, ...changed },
      "the number of requests in flight of an agent was wrong, and is corrected",
    );
    signals.publish("agent", [id]);
  }
  return { corrected };
}
