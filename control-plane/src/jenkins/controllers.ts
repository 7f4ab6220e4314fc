// SQL of controllers: what people read and change, and whose turn a poll is.

import type {
  JenkinsController,
  JenkinsLabelPolicy,
  JenkinsQueueItem,
} from "@holdfast/contracts/endpoints/jenkins";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import type { Queryable, Sql, Tx } from "../database/connect.ts";
import { type FailureKind, needsPerson } from "./client/failure.ts";
import { POLL_CLAIM_SECONDS } from "./settings.ts";

export type ControllerRow = {
  id: string;
  org_id: string;
  name: string;
  url: string;
  user_name: string;
  enabled: boolean;
  labels: JenkinsLabelPolicy[];
  most_leases: number;
  burst: number;
  cooldown_seconds: number;
  connect_seconds: number;
  last_polled_at: Date | null;
  last_succeeded_at: Date | null;
  failures: number;
  problem: TaskFailure | null;
  queue: JenkinsQueueItem[];
  creator_name: string;
  created_at: Date;
  builds: number;
};

const columns = (db: Queryable) => db`
  c.id, c.org_id, c.name, c.url, c.user_name, c.enabled, c.labels, c.most_leases, c.burst, c.cooldown_seconds, c.connect_seconds,
  c.last_polled_at, c.last_succeeded_at, c.failures, c.problem, c.queue, c.creator_name, c.created_at,
  (SELECT count(*)::int FROM jenkins_builds b WHERE b.controller_id = c.id AND b.finished_at IS NULL) AS builds`;

/** By name. */
export async function selectControllers(tx: Tx, id: string | null = null): Promise<ControllerRow[]> {
  return tx<ControllerRow[]>`
    SELECT ${columns(tx)} FROM jenkins_controllers c WHERE ${id}::uuid IS NULL OR c.id = ${id} ORDER BY c.name`;
}

export function presentController(row: ControllerRow): JenkinsController {
  return {
    ...{
      id: row.id,
      name: row.name,
      url: row.url,
      user: row.user_name,
      enabled: row.enabled,
      state: stateOf(row),
    },
    ...{ problem: row.problem, labels: row.labels, max_leases: row.most_leases, burst: row.burst },
    ...{ cooldown_seconds: row.cooldown_seconds, connect_seconds: row.connect_seconds },
    last_polled_at: row.last_polled_at?.toISOString() ?? null,
    last_succeeded_at: row.last_succeeded_at?.toISOString() ?? null,
    ...{ queued: row.queue.length, builds: row.builds, created_by: row.creator_name },
    created_at: row.created_at.toISOString(),
  };
}

function stateOf({ enabled, problem, last_polled_at }: ControllerRow): JenkinsController["state"] {
  if (!enabled) return "disabled";
  if (problem) return needsPerson[problem.code.replace("jenkins_", "") as FailureKind] ? "refused" : "failing";
  return last_polled_at === null ? "unpolled" : "working";
}

export type NewController = {
  id: string;
  orgId: string;
  name: string;
  url: string;
  user: string;
  sealedToken: Buffer;
  labels: readonly JenkinsLabelPolicy[];
  mostLeases: number;
  burst: number;
  cooldownSeconds: number;
  connectSeconds: number;
  creatorName: string;
};

/** False: the organization has one of this name. */
export async function insertController(tx: Tx, one: NewController): Promise<boolean> {
  const rows = await tx`
    INSERT INTO jenkins_controllers (id, org_id, name, url, user_name, sealed_token, labels, most_leases, burst, cooldown_seconds,
      connect_seconds, creator_name)
    VALUES (${one.id}, ${one.orgId}, ${one.name}, ${one.url}, ${one.user}, ${one.sealedToken},
      ${JSON.stringify(one.labels)}::text::json, ${one.mostLeases}, ${one.burst}, ${one.cooldownSeconds}, ${one.connectSeconds},
      ${one.creatorName})
    ON CONFLICT (org_id, name) DO NOTHING RETURNING id`;
  return rows.length === 1;
}

/** Makes the count of an organization's controllers reliable: two that add one wait for each other. */
export async function countControllers(tx: Tx, orgId: string): Promise<number> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`jenkins controllers of ${orgId}`}, 0))`;
  const [row] = await tx<{ n: number }[]>`SELECT count(*)::int AS n FROM jenkins_controllers`;
  return row?.n ?? 0;
}

/** Also polled at once, so that a person sees what comes of it. */
export async function setEnabled(tx: Tx, id: string, enabled: boolean): Promise<boolean> {
  const { count } = await tx`
    UPDATE jenkins_controllers SET enabled = ${enabled}, next_poll_at = now() WHERE id = ${id}`;
  return count === 1;
}

/** Polled at once, as if it had never failed. */
export async function setToken(tx: Tx, id: string, sealedToken: Buffer): Promise<void> {
  await tx`
    UPDATE jenkins_controllers SET sealed_token = ${sealedToken}, failures = 0, problem = NULL, next_poll_at = now()
    WHERE id = ${id}`;
}

/** With its builds. Nobody claims another item for it meanwhile. */
export async function lockController(tx: Tx, id: string): Promise<boolean> {
  return (await tx`SELECT id FROM jenkins_controllers WHERE id = ${id} FOR UPDATE`).length === 1;
}

export async function deleteController(tx: Tx, id: string): Promise<void> {
  await tx`DELETE FROM jenkins_controllers WHERE id = ${id}`;
}

export type PolledController = Omit<ControllerRow, "builds"> & { sealed_token: Buffer };

const polled = (db: Queryable) => db`
  c.id, c.org_id, c.name, c.url, c.user_name, c.sealed_token, c.enabled, c.labels, c.most_leases, c.burst, c.cooldown_seconds,
  c.connect_seconds, c.last_polled_at, c.last_succeeded_at, c.failures, c.problem, c.queue, c.creator_name, c.created_at`;

/**
 * Takes the controllers whose poll is due, for as long as a poll may take: others leave them alone meanwhile. A disabled one is
 * polled while builds of it have VMs.
 */
export async function takeDueControllers(system: Sql, most: number): Promise<PolledController[]> {
  return system<PolledController[]>`
    UPDATE jenkins_controllers c SET next_poll_at = now() + ${POLL_CLAIM_SECONDS} * interval '1 second'
    WHERE c.id IN (
      SELECT d.id FROM jenkins_controllers d
      WHERE d.next_poll_at <= now() AND (d.enabled OR EXISTS (
        SELECT FROM jenkins_builds b WHERE b.controller_id = d.id AND b.finished_at IS NULL))
      ORDER BY d.next_poll_at LIMIT ${most} FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING ${polled(system)}`;
}

export async function selectForCheck(
  system: Queryable,
  { id, orgId }: { id: string; orgId: string },
): Promise<PolledController | undefined> {
  const [row] = await system<PolledController[]>`
    SELECT ${polled(system)} FROM jenkins_controllers c WHERE c.id = ${id} AND c.org_id = ${orgId}`;
  return row;
}

export async function recordSuccess(
  system: Sql,
  id: string,
  { queue, nextSeconds }: { queue: readonly JenkinsQueueItem[]; nextSeconds: number },
): Promise<void> {
  await system`
    UPDATE jenkins_controllers SET last_polled_at = now(), last_succeeded_at = now(), failures = 0, problem = NULL,
      queue = ${JSON.stringify(queue)}::text::json, next_poll_at = now() + ${nextSeconds} * interval '1 second'
    WHERE id = ${id}`;
}

/** Nothing is recorded if the API token was replaced while it was used: the next poll is due already. */
export async function recordFailure(
  system: Sql,
  { id, sealed_token }: Pick<PolledController, "id" | "sealed_token">,
  { problem, nextSeconds }: { problem: TaskFailure; nextSeconds: number },
): Promise<void> {
  await system`
    UPDATE jenkins_controllers SET last_polled_at = now(), failures = failures + 1,
      problem = ${JSON.stringify(problem)}::text::json, next_poll_at = now() + ${nextSeconds} * interval '1 second'
    WHERE id = ${id} AND sealed_token = ${sealed_token}`;
}
