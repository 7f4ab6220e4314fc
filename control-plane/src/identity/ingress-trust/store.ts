// SQL of `ingress_trust`. All times are the database's, the one clock that replicas share.

import type { Queryable, Sql } from "../../database/connect.ts";
import { TRIED_WITHIN_MS, type Way } from "./decide.ts";
import type { Outcome } from "./outcome.ts";

export type Tried = { endpoint: string; url: string; address: string; outcome: Outcome };
export type Known = { ways: Way[]; now: Date };

/** What others have seen of the same ways stays; ways that nobody tries any more are removed. */
export async function storeTried(system: Sql, tried: readonly Tried[]): Promise<void> {
  const column = <Value>(read: (one: Tried) => Value): Value[] => tried.map(read);
  const why = ({ outcome }: Tried) => ("why" in outcome ? outcome.why.slice(0, 300) : null);
  await system`
    WITH tried AS (
      SELECT * FROM unnest(${column((one) => one.endpoint)}::text[], ${column((one) => one.url)}::text[],
        ${column((one) => one.address)}::text[], ${column(({ outcome }) => outcome.state)}::text[],
        ${column(({ outcome }) => ("ingress" in outcome ? outcome.ingress : null))}::text[],
        ${column(why)}::text[]) AS t (endpoint, url, address, state, ingress, why)
    ), gone AS (
      DELETE FROM ingress_trust w WHERE greatest(accepted_at, rejected_at, unreachable_at) <
        now() - ${`${TRIED_WITHIN_MS} milliseconds`}::interval
        AND NOT EXISTS (SELECT FROM tried t WHERE (t.endpoint, t.url, t.address) = (w.endpoint, w.url, w.address))
    )
    INSERT INTO ingress_trust AS w (endpoint, url, address, ingress, accepted_at, rejected_at, rejection, unreachable_at, problem)
    SELECT endpoint, url, address, ingress, CASE state WHEN 'accepted' THEN now() END,
      CASE state WHEN 'rejected' THEN now() END, CASE state WHEN 'rejected' THEN why END,
      CASE state WHEN 'unreachable' THEN now() END, CASE state WHEN 'unreachable' THEN why END
    FROM tried ORDER BY endpoint, url, address
    ON CONFLICT (endpoint, url, address) DO UPDATE SET
      ingress = coalesce(excluded.ingress, w.ingress),
      accepted_at = greatest(excluded.accepted_at, w.accepted_at),
      rejected_at = greatest(excluded.rejected_at, w.rejected_at),
      rejection = coalesce(excluded.rejection, w.rejection),
      unreachable_at = greatest(excluded.unreachable_at, w.unreachable_at),
      problem = coalesce(excluded.problem, w.problem)`;
}

export async function readKnown(db: Queryable): Promise<Known> {
  const rows = await db<(Way & { now: Date })[]>`
    SELECT endpoint, url, address, ingress, accepted_at AS "acceptedAt", rejected_at AS "rejectedAt", rejection,
      unreachable_at AS "unreachableAt", problem, now() AS now
    FROM ingress_trust ORDER BY endpoint, url, address`;
  return { ways: rows.map(({ now: _, ...way }) => way), now: rows[0]?.now ?? new Date() };
}
