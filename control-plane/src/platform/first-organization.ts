// A new installation has one organization, so that everything works before anyone has signed in.

import type { Sql } from "../database/connect.ts";
import { insertOrganization } from "../organizations/queries.ts";

export async function ensureFirstOrganization(system: Sql): Promise<void> {
  await system.begin(async (tx) => {
    const present = await tx`SELECT FROM organizations LIMIT 1`;
    // If several replicas start at once, one inserts; the others conflict on the slug.
    if (present.length === 0) await insertOrganization(tx, { slug: "default", name: "Default" });
  });
}
