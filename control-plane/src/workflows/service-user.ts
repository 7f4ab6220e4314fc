// The service user of an organization: on whose behalf runs act that no person started. It is an id, not an account: nobody signs in as it.

import type { AuditActor } from "../audit/record.ts";
import type { Queryable } from "../database/connect.ts";

export type ServiceUser = AuditActor & { actor_id: string };

export const serviceUser = (id: string): ServiceUser => ({
  ...{ actor_type: "system", actor_id: id, actor_name: "workflow service user", role: "system" },
});

export async function serviceUserOf(db: Queryable, orgId: string): Promise<ServiceUser> {
  const [row] = await db<{ id: string }[]>`SELECT service_user_id AS id FROM organizations WHERE id = ${orgId}`;
  if (!row) throw new Error(`organization ${orgId} is unknown`);
  return serviceUser(row.id);
}
