// Applies an event to a build: the one statement by which a build changes after it was claimed. The state under the lock and the
// table decide what comes of it, so an event that two processes found, or that was found before another one happened, does no harm.

import type { JenkinsBuildState } from "@holdfast/contracts/endpoints/jenkins";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { ConstantSql, type Queryable } from "../../../database/connect.ts";
import { cellsOf, isOneOf, targetOf } from "../../../mechanisms/transition-sql.ts";
import { type BuildEvent, buildEvents, buildTable } from "./table.ts";

export type BuildHappened = {
  buildId: string;
  event: BuildEvent;
  /** Of an event that ends it: why, and what to do. */
  reason?: TaskFailure | null;
  buildUrl?: string | null;
};

export type AppliedBuild = {
  id: string;
  outcome: "moved" | "noted" | "unchanged";
  from_status: JenkinsBuildState;
  status: JenkinsBuildState;
};

const columns = { event: "h.event", status: "b.status" };
const newStatus = cellsOf(buildTable, columns, buildEvents, targetOf);
const outcome = cellsOf(buildTable, columns, buildEvents, (one) => (typeof one === "object" ? "moved" : one));

const becomes = (...states: JenkinsBuildState[]) => isOneOf("j.new_status", states);
const becomesConnected = becomes("connected");
const becomesBuilding = becomes("building");
const becomesRemoving = becomes("removing");
const ends = becomes("ended");
const isLeasedNow = new ConstantSql("b.leased OR j.event = 'leased' AND j.outcome = 'moved'");

/** Undefined: the build does not exist any more. */
export async function applyToBuild(sql: Queryable, happened: BuildHappened): Promise<AppliedBuild | undefined> {
  const { buildId, event, reason = null, buildUrl = null } = happened;
  const [row] = await sql<AppliedBuild[]>`
    WITH happened AS (SELECT ${event}::text AS event), locked AS MATERIALIZED (
      SELECT b.* FROM jenkins_builds b WHERE b.id = ${buildId} FOR NO KEY UPDATE
    ), judged AS MATERIALIZED (
      SELECT b.id, b.org_id, b.lease_id, b.node_name, b.status AS from_status, h.event, ${newStatus} AS new_status,
        ${outcome} AS outcome
      FROM locked b CROSS JOIN happened h
    ), changed AS (
      UPDATE jenkins_builds b SET status = coalesce(j.new_status, b.status), revision = b.revision + 1,
        leased = ${isLeasedNow},
        build_url = coalesce(${buildUrl}, b.build_url),
        reason = CASE WHEN ${becomesRemoving} THEN ${reason === null ? null : JSON.stringify(reason)}::text::json ELSE b.reason END,
        connected_at = CASE WHEN ${becomesConnected} THEN now() ELSE b.connected_at END,
        building_at = CASE WHEN ${becomesBuilding} THEN now() ELSE b.building_at END,
        lost_at = CASE WHEN j.event = 'agent_lost' THEN coalesce(b.lost_at, now())
          WHEN j.event = 'agent_returned' THEN NULL ELSE b.lost_at END,
        left_at = CASE WHEN j.event = 'item_left' THEN coalesce(b.left_at, now()) ELSE b.left_at END,
        removing_at = CASE WHEN ${becomesRemoving} THEN now() ELSE b.removing_at END,
        finished_at = CASE WHEN ${ends} THEN now() ELSE b.finished_at END
      FROM judged j WHERE b.id = j.id AND j.outcome IN ('moved', 'noted')
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, details)
      SELECT ${uuidv7()}, j.org_id, 'system', NULL, 'jenkins', 'system',
        CASE WHEN ${ends} THEN 'jenkins_build.end' ELSE 'jenkins_build.remove' END, 'jenkins_build', j.id::text,
        j.node_name, 'allowed', j.lease_id::text,
        jsonb_build_object('from', j.from_status, 'to', j.new_status, 'event', j.event, 'lease_id', j.lease_id,
          'reason', ${reason?.code ?? null}::text)
      FROM judged j WHERE j.outcome = 'moved' AND (${becomesRemoving} OR ${ends})
    )
    SELECT j.id, CASE WHEN j.outcome = 'impossible' THEN 'unchanged' ELSE j.outcome END AS outcome, j.from_status,
      coalesce(j.new_status, j.from_status) AS status
    FROM judged j`;
  return row;
}
