// Writes notifications of allocations: the words of their state, the newest ones of each.

import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";

export type Notification = { id: string; state: UserState; incidentId: string | null };

/** Of each allocation; older ones are removed as new ones are written. */
const KEPT_NOTIFICATIONS = 100;

/** `id`: of the allocation. */
export async function insertNotifications(tx: Tx, all: readonly Notification[]): Promise<void> {
  if (all.length === 0) return;
  const column = <Value>(read: (one: Notification) => Value): Value[] => all.map(read);
  const ids = column(({ id }) => id);
  await tx`
    INSERT INTO allocation_notifications (id, org_id, project_id, allocation_id, state, title, message, incident_id)
    SELECT t.notification_id, a.org_id, a.project_id, a.id, t.state, t.title, t.message, t.incident_id
    FROM unnest(${ids}::uuid[], ${column(() => uuidv7())}::uuid[], ${column(({ state }) => state)}::text[],
      ${column(({ state }) => userStateTitles[state].title)}::text[],
      ${column(({ state }) => userStateTitles[state].meaning)}::text[],
      ${column(({ incidentId }) => incidentId)}::uuid[]
    ) AS t (id, notification_id, state, title, message, incident_id)
    JOIN allocations a ON a.id = t.id`;
  await tx`
    DELETE FROM allocation_notifications WHERE id IN (
      SELECT old.id FROM unnest(${ids}::uuid[]) AS a (id),
      LATERAL (SELECT n.id FROM allocation_notifications n WHERE n.allocation_id = a.id
        ORDER BY n.id DESC OFFSET ${KEPT_NOTIFICATIONS}) AS old)`;
}
