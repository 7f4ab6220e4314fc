// SQL of preflights.

import type { Preflight } from "@holdfast/contracts/endpoints/preflights";
import type { PreflightHopReport, PreflightReport, PreflightResult } from "@holdfast/contracts/preflight/report";
import type { Sql, Tx } from "../database/connect.ts";

export type PreflightRow = {
  id: string;
  node_id: string;
  node_name: string;
  allocation_id: string | null;
  state: Preflight["state"];
  result: PreflightResult | null;
  failed_hop: Preflight["failed_hop"];
  run_from: Preflight["run_from"];
  runner_name: string;
  correlation_id: string;
  started_at: Date;
  finished_at: Date | null;
  hops: PreflightHopReport[];
  report: PreflightReport | null;
};

type NewPreflight = Pick<PreflightRow, "id" | "node_id" | "allocation_id" | "run_from" | "runner_name"> & {
  org_id: string;
  correlation_id: string;
};

/** False: the api already runs one of this node. */
export async function insertRunning(tx: Tx, row: NewPreflight): Promise<boolean> {
  const { count } = await tx`
    INSERT INTO preflights (id, org_id, node_id, allocation_id, state, run_from, runner_name, correlation_id)
    VALUES (${row.id}, ${row.org_id}, ${row.node_id}, ${row.allocation_id}, 'running', ${row.run_from},
      ${row.runner_name}, ${row.correlation_id})
    ON CONFLICT (node_id) WHERE state = 'running' DO NOTHING`;
  return count === 1;
}

export async function insertFinished(tx: Tx, row: NewPreflight, report: PreflightReport): Promise<void> {
  await tx`
    INSERT INTO preflights (id, org_id, node_id, allocation_id, state, result, failed_hop, run_from, runner_name,
      correlation_id, started_at, finished_at, hops, report)
    VALUES (${row.id}, ${row.org_id}, ${row.node_id}, ${row.allocation_id}, 'finished', ${report.result},
      ${report.failed_hop}, ${row.run_from}, ${row.runner_name}, ${row.correlation_id},
      least(${new Date(report.started_at)}, now()), least(${new Date(report.finished_at)}, now()),
      ${JSON.stringify(report.hops)}::text::jsonb, ${JSON.stringify(report)}::text::jsonb)`;
}

export async function updateHops(system: Sql, id: string, hops: readonly PreflightHopReport[]): Promise<void> {
  await system`
    UPDATE preflights SET hops = ${JSON.stringify(hops)}::text::jsonb WHERE id = ${id} AND state = 'running'`;
}

export async function finish(system: Sql, id: string, report: PreflightReport): Promise<void> {
  await system`
    UPDATE preflights SET state = 'finished', result = ${report.result}, failed_hop = ${report.failed_hop},
      finished_at = now(), hops = ${JSON.stringify(report.hops)}::text::jsonb,
      report = ${JSON.stringify(report)}::text::jsonb
    WHERE id = ${id} AND state = 'running'`;
}

export async function interrupt(system: Sql, id: string): Promise<void> {
  await system`
    UPDATE preflights SET state = 'interrupted', finished_at = now() WHERE id = ${id} AND state = 'running'`;
}

/** Of an api that stopped: a run takes less than a minute. */
export async function interruptAbandoned(system: Sql): Promise<string[]> {
  const rows = await system<{ id: string }[]>`
    UPDATE preflights SET state = 'interrupted', finished_at = now()
    WHERE state = 'running' AND started_at < now() - interval '2 minutes' RETURNING id`;
  return rows.map(({ id }) => id);
}

/** The last good one of a node, and of an allocation, stays. */
export async function removeOldPreflights(system: Sql, { days }: { days: number }): Promise<number> {
  const { count } = await system`
    DELETE FROM preflights p WHERE p.started_at < now() - ${days} * interval '1 day' AND p.state <> 'running'
      AND p.id NOT IN (
        SELECT DISTINCT ON (node_id, allocation_id) id FROM preflights WHERE result = 'ready'
        ORDER BY node_id, allocation_id, id DESC)`;
  return count;
}

type Filter = { node_id?: string | undefined; allocation_id?: string | undefined; result?: string | undefined };

export async function selectPreflights(
  tx: Tx,
  { node_id = null as never, allocation_id = null as never, result = null as never }: Filter,
  { before, limit }: { before: string; limit: number },
): Promise<PreflightRow[]> {
  return tx<PreflightRow[]>`
    SELECT p.*, n.name AS node_name FROM preflights p JOIN nodes n ON n.id = p.node_id
    WHERE p.id < ${before} AND (${node_id}::uuid IS NULL OR p.node_id = ${node_id})
      AND (${allocation_id}::uuid IS NULL OR p.allocation_id = ${allocation_id})
      AND (${result}::text IS NULL OR p.result = ${result})
    ORDER BY p.id DESC LIMIT ${limit + 1}`;
}

export async function selectPreflight(tx: Tx, id: string): Promise<PreflightRow | undefined> {
  const [row] = await tx<PreflightRow[]>`
    SELECT p.*, n.name AS node_name FROM preflights p JOIN nodes n ON n.id = p.node_id WHERE p.id = ${id}`;
  return row;
}

export function toPreflight(row: PreflightRow): Preflight {
  const { id, node_id, node_name, allocation_id, state, result, failed_hop, run_from, correlation_id } = row;
  return {
    ...{ id, node_id, node_name, allocation_id, state, result, failed_hop, run_from, correlation_id },
    run_by: row.runner_name,
    started_at: row.started_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
    hops: row.hops,
    report: row.report,
  };
}
