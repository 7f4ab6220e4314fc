// Which nodes have missed the renewal of their certificate, for the log and the metric behind alerts. The
// statement follows `certificateStage`, and uses the certificate that the node's page shows; a test compares them.

import { RENEWAL_OVERDUE_AT } from "@holdfast/contracts/node/certificate-stage";
import type { Metrics } from "@holdfast/service/metrics";
import type { Queryable, Sql } from "../../database/connect.ts";

export type LateNode = { id: string; not_after: Date };

/** Of nodes that should be online. */
export async function selectLate(system: Sql): Promise<LateNode[]> {
  return system<
    LateNode[]
  >`SELECT id, not_after FROM (${lateCertificates(system)}) AS late WHERE revoked_at IS NULL ORDER BY id`;
}

type LateCounts = { cert_renewal_overdue: number; cert_expired: number };

/** Counting takes 0.4 s with 10,000 nodes, and the value changes within hours: not counted at every scrape. */
const COUNT_EVERY_MS = 30_000;

export function measureLate(metrics: Metrics, system: Sql, now: () => number = Date.now): void {
  let last: { at: number; counts: LateCounts } | undefined;
  metrics.gaugeByReason(
    "holdfast_nodes_certificate_late",
    "Active nodes whose certificate should have been renewed by now, or has expired",
    async () => {
      if (!last || now() - last.at >= COUNT_EVERY_MS) {
        last = undefined;
        last = { at: now(), counts: await countLate(system) };
      }
      return last.counts;
    },
  );
}

/** Of active nodes: the operator who quarantined a node knows that it does not renew. */
async function countLate(system: Sql): Promise<LateCounts> {
  const [row] = await system<LateCounts[]>`
    SELECT count(*) FILTER (WHERE not_after >= now())::integer AS cert_renewal_overdue,
           count(*) FILTER (WHERE not_after < now())::integer AS cert_expired
    FROM (${lateCertificates(system)}) AS late WHERE status = 'active'`;
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}

/**
 * By the certificate in the last heartbeat, if that is newer than the last issue; otherwise by the last issued one.
 * Searching the heartbeat's text for a serial takes a tenth of the time that reading its fields takes.
 */
export const lateCertificates = (sql: Queryable) => sql`
  SELECT n.id, n.status, n.revoked_at, c.not_before, c.not_after
  FROM nodes n
  CROSS JOIN LATERAL (
    SELECT serial, not_before, not_after, issued_at FROM node_certificates
    WHERE node_id = n.id ORDER BY not_after DESC, issued_at DESC LIMIT 1
  ) issued
  LEFT JOIN node_presence p ON p.node_id = n.id AND p.heartbeat_at > issued.issued_at
  LEFT JOIN node_certificates used
    ON used.serial = CASE WHEN strpos(p.heartbeat::text, issued.serial) = 0 THEN p.heartbeat #>> '{certificate,serial}' END
    AND used.node_id = n.id
  CROSS JOIN LATERAL (
    SELECT coalesce(used.not_before, issued.not_before) AS not_before,
           coalesce(used.not_after, issued.not_after) AS not_after
  ) c
  WHERE now() > c.not_before + (c.not_after - c.not_before) * ${RENEWAL_OVERDUE_AT}::float8`;
