// Sends the notifications that waited while the control plane was suspected, to allocations whose state still differs from
// that of their last notification.

import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Sql, Tx } from "../../database/connect.ts";
import { readBrake } from "../brake/read.ts";
import { insertNotifications } from "./notify.ts";

const BATCH = 500;

type Waiting = { id: string; state: UserState; incidentId: string | null; released: boolean };

/** Returns the ids of the allocations. At rest this is a look into an empty index. */
export async function releaseNotifications(system: Sql): Promise<string[]> {
  const [any] = await system`SELECT FROM allocations WHERE notified_state IS NOT NULL LIMIT 1`;
  if (!any || (await readBrake(system)).braked) return [];
  const sent: string[] = [];
  for (;;) {
    const some = await system.begin(releaseSome);
    sent.push(...some.sent);
    if (some.found < BATCH) return sent;
  }
}

async function releaseSome(tx: Tx): Promise<{ found: number; sent: string[] }> {
  const waiting = await tx<Waiting[]>`
    WITH due AS (
      SELECT id FROM allocations WHERE notified_state IS NOT NULL ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
    UPDATE allocations a SET notified_state = NULL FROM due
    WHERE a.id = due.id
    RETURNING a.id, a.user_state AS state, a.status = 'released' AS released,
      (SELECT incident_id FROM node_verdicts v WHERE v.node_id = a.node_id) AS "incidentId"`;
  const current = waiting.filter(({ released }) => !released);
  await insertNotifications(tx, current);
  return { found: waiting.length, sent: current.map(({ id }) => id) };
}
