// Incidents over HTTP, for operators: of an organization's nodes, and of the whole installation.

import {
  getIncident,
  type Incident,
  type IncidentDetail,
  listIncidents,
  listPlatformIncidents,
  MOST_LISTED_NODES,
  type PlatformIncident,
  type SharedAttribute,
} from "@holdfast/contracts/endpoints/incidents";
import { ApiError } from "@holdfast/contracts/errors";
import { EVIDENCE_FORMAT } from "@holdfast/contracts/public/evidence-file";
import { presentReason, titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { operatorRoute, orgRoute } from "../../api/route.ts";
import { presentShared, titleOfCause } from "../common-cause/words.ts";
import {
  type IncidentRow,
  selectIncident,
  selectIncidentPage,
  selectMembers,
  selectVerdicts,
  type VerdictRow,
} from "./queries.ts";

export function incidentRoutes(api: ApiContext): void {
  orgRoute(api, listIncidents, async ({ tx, query }) => {
    const { cursor, limit, node_id: nodeId, state, part_of: partOf, episode } = query;
    const before = pageStart(listIncidents, cursor);
    const rows = await selectIncidentPage(tx, { before, limit, nodeId, state, partOf, episode });
    return toPage(listIncidents, rows, { limit, idOf: ({ id }) => id, toItem: present });
  });

  orgRoute(api, getIncident, async ({ tx, params: { incident_id: id } }): Promise<IncidentDetail> => {
    const row = await selectIncident(tx, id);
    if (!row) throw new ApiError("not_found");
    const nodes = row.node_id === null ? await selectMembers(tx, id, MOST_LISTED_NODES) : [];
    const verdicts = await selectVerdicts(tx, id);
    return { ...present(row), nodes, episodes: row.episodes, verdicts: verdicts.map(presentVerdict) };
  });

  operatorRoute(api, listPlatformIncidents, async ({ tx, query: { cursor, limit, state } }) => {
    const none = tx``;
    const rows = await tx<PlatformRow[]>`
      SELECT id, reason, attribute, value, began_at, opened_at, closed_at, outage_began_at, outage_ended_at, nodes,
             organizations
      FROM platform_incidents WHERE id < ${pageStart(listPlatformIncidents, cursor)}
        ${state === undefined ? none : state === "open" ? tx`AND closed_at IS NULL` : tx`AND closed_at IS NOT NULL`}
      ORDER BY id DESC LIMIT ${limit + 1}`;
    return toPage(listPlatformIncidents, rows, { limit, idOf: ({ id }) => id, toItem: presentPlatform });
  });
}

function present(row: IncidentRow): Incident {
  const { id, node_id, node_name, part_of, reason, signal, severity, owner, next_action, user_state } = row;
  const { attribute, value } = row;
  return {
    ...{ id, node_id, node_name, part_of, reason, signal, user_state, state: row.closed_at ? "closed" : "open" },
    shared: attribute ? presentShared({ ...row, attribute, value: value ?? "" }, "your nodes") : null,
    node_count: row.nodes,
    ...{ ...presentReason(reason), title: titleOfCause(row), severity, owner_id: owner, next_action },
    ...{ began_at: row.began_at.toISOString(), opened_at: row.opened_at.toISOString() },
    closed_at: row.closed_at?.toISOString() ?? null,
    ...{ detect_within_seconds: row.detect_seconds, repair_within: row.repair_within },
  };
}

function presentVerdict({ at, causes, evidence }: VerdictRow): IncidentDetail["verdicts"][number] {
  return {
    at: at.toISOString(),
    causes: causes.map(({ reason, spokenAs, confidence }) => ({ reason, title: titleOf(spokenAs), confidence })),
    evidence: { format: EVIDENCE_FORMAT, at: at.toISOString(), observations: evidence },
  };
}

type PlatformRow = {
  id: string;
  reason: string;
  attribute: SharedAttribute;
  value: string;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
  nodes: number;
  organizations: number;
};

function presentPlatform(row: PlatformRow): PlatformIncident {
  const { id, reason } = row;
  return {
    ...{ id, reason, state: row.closed_at ? "closed" : "open" },
    ...{ ...presentReason(reason), title: titleOfCause(row) },
    shared: presentShared(row, "all nodes"),
    ...{ began_at: row.began_at.toISOString(), opened_at: row.opened_at.toISOString() },
    closed_at: row.closed_at?.toISOString() ?? null,
    ...{ node_count: row.nodes, organization_count: row.organizations },
  };
}
