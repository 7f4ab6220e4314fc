// Publishes nodes whose certificates are no longer accepted, so that the gateways end their connections.

import type { Sql } from "../database/connect.ts";
import type { News } from "./news.ts";

type Revoked = { id: string; changed_at: Date };

/** A change is timestamped before its transaction commits, which may take up to 30 s. */
const LOOK_BACK = "40 seconds";

/** Each change of a node is published once, however often it is found. */
export async function announceRevocations(system: Sql, news: Pick<News, "publishOnce">): Promise<void> {
  const revoked = await selectRevoked(system);
  news.publishOnce(
    revoked.map(({ id, changed_at }) => ({
      key: `${id} ${changed_at.getTime()}`,
      line: { type: "node_revoked", node_id: id },
    })),
  );
}

/** Nodes that were revoked, or enrolled again, which revokes their earlier certificates. */
function selectRevoked(system: Sql): Promise<Revoked[]> {
  return system<Revoked[]>`
    SELECT n.id, n.status_changed_at AS changed_at FROM nodes n
    WHERE n.status_changed_at > now() - ${LOOK_BACK}::interval
      AND (n.revoked_at IS NOT NULL OR EXISTS (
        SELECT FROM node_certificates c WHERE c.node_id = n.id AND c.revoked_at > n.status_changed_at - interval '30 seconds'))`;
}
