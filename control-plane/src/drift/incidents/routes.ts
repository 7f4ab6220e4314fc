// Incidents over HTTP, for operators.

import {
  getIncident,
  type Incident,
  type IncidentDetail,
  listIncidents,
} from "@holdfast/contracts/endpoints/incidents";
import { ApiError } from "@holdfast/contracts/errors";
import { EVIDENCE_FORMAT, type FileObservation } from "@holdfast/contracts/public/evidence-file";
import { presentReason, titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import type { NextAction, Severity, UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import type { StoredCause } from "../verdicts/stored.ts";

type Row = {
  id: string;
  node_id: string;
  node_name: string;
  reason: string;
  signal: string | null;
  severity: Severity;
  owner: OwnerId;
  next_action: NextAction;
  user_state: UserState;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  detect_seconds: number;
  repair_within: string;
};
type VerdictRow = { at: Date; causes: StoredCause[]; evidence: FileObservation[] };

export function incidentRoutes(api: ApiContext): void {
  orgRoute(api, listIncidents, async ({ tx, query: { cursor, limit, node_id, state } }) => {
    const none = tx``;
    const rows = await tx<Row[]>`
      ${selected(tx)} WHERE i.id < ${pageStart(listIncidents, cursor)}
        ${node_id === undefined ? none : tx`AND i.node_id = ${node_id}`}
        ${state === undefined ? none : state === "open" ? tx`AND i.closed_at IS NULL` : tx`AND i.closed_at IS NOT NULL`}
      ORDER BY i.id DESC LIMIT ${limit + 1}`;
    return toPage(listIncidents, rows, { limit, idOf: ({ id }) => id, toItem: present });
  });

  orgRoute(api, getIncident, async ({ tx, params: { incident_id: id } }): Promise<IncidentDetail> => {
    const [row] = await tx<Row[]>`${selected(tx)} WHERE i.id = ${id}`;
    if (!row) throw new ApiError("not_found");
    const verdicts = await tx<VerdictRow[]>`
      SELECT at, causes, evidence FROM incident_verdicts WHERE incident_id = ${id} ORDER BY at`;
    return { ...present(row), verdicts: verdicts.map(presentVerdict) };
  });
}

const selected = (tx: Tx) => tx`
  SELECT i.id, i.node_id, n.name AS node_name, i.reason, i.signal, i.severity, i.owner, i.next_action, i.user_state,
         i.began_at, i.opened_at, i.closed_at, i.detect_seconds, i.repair_within
  FROM incidents i JOIN nodes n ON n.id = i.node_id`;

function present(row: Row): Incident {
  const { id, node_id, node_name, reason, signal, severity, owner, next_action, user_state } = row;
  return {
    ...{ id, node_id, node_name, reason, signal, user_state, state: row.closed_at ? "closed" : "open" },
    ...{ ...presentReason(reason), severity, owner_id: owner, next_action },
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
