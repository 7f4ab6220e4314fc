// A verdict as the API presents it.

import type { Explanation, Cause as PresentedCause } from "@holdfast/contracts/endpoints/drift";
import { presentReason, titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { Cause, Verdict } from "../classify/classify.ts";
import type { Observation } from "../evidence/observation.ts";
import { isFresh, partsOf } from "./parts.ts";
import type { IncidentRow } from "./queries.ts";
import { headlineOf, messageOf, nextStepOf } from "./words.ts";

export function explain(
  node: { id: string; name: string },
  known: { evidence: readonly Observation[]; verdict: Verdict; incidents: readonly IncidentRow[]; now: Date },
): Explanation {
  const { evidence, verdict, incidents } = known;
  const { causes, userState } = verdict;
  const now = known.now.getTime();
  const open = incidents.find(({ closed_at }) => closed_at === null);
  return {
    ...{ node_id: node.id, node_name: node.name, at: known.now.toISOString() },
    headline: headlineOf({ name: node.name, causes, evidence, now }),
    healthy: causes.length === 0,
    user_state: userState,
    causes: causes.map(presentCause),
    layers: layersOf(causes, evidence),
    parts: partsOf(evidence, verdict, now),
    incident: open
      ? { id: open.id, began_at: open.began_at.toISOString(), opened_at: open.opened_at.toISOString() }
      : null,
    history: incidents.map(presentIncident),
    evidence: evidence
      .map((one) => presentEvidence(one, isFresh(one, verdict, now)))
      .sort((a, b) => (a.observed_at > b.observed_at ? -1 : 1)),
  };
}

function presentCause(cause: Cause): PresentedCause {
  const { reason, signal, layer, confidence, severity, owner, nextAction, budget } = cause;
  return {
    ...{ reason, signal, layer, confidence },
    ...presentReason(reason),
    ...{ severity, owner_id: owner, next_action: nextAction },
    message: messageOf(cause),
    title: titleOf(cause.spokenAs),
    next_step: nextStepOf(cause),
    user_state: cause.userState,
    also_involves: [...cause.alsoInvolves],
    budget: { detect_seconds: budget.detect, repair: budget.repair },
    since: new Date(cause.since).toISOString(),
    symptoms: cause.symptoms.map((code) => ({ reason: code, title: titleOf(code) })),
    evidence: cause.evidence.map(({ id }) => id),
    changed_by: cause.changedBy,
  };
}

/** Never one bit: that the node cannot be managed says nothing about what runs on it. */
function layersOf(causes: readonly Cause[], evidence: readonly Observation[]): Explanation["layers"] {
  const impaired = (...layers: string[]) => causes.some(({ layer }) => layers.includes(layer));
  const seen = (kind: string, value: string) =>
    evidence.some((one) => one.kind === kind && one.value === value) ? "working" : "unknown";
  return {
    management: impaired("management", "platform") ? "impaired" : "working",
    workload: impaired("workload") ? "impaired" : seen("app_status", "running"),
    access: impaired("access") ? "impaired" : seen("terminal", "ready"),
  };
}

function presentIncident(row: IncidentRow): Explanation["history"][number] {
  const seconds = (from: Date, to: Date) => Math.round((to.getTime() - from.getTime()) / 100) / 10;
  const repair = Number(row.repair_within);
  return {
    ...{ incident_id: row.id, reason: row.reason, title: titleOf(row.reason), severity: row.severity },
    ...{ began_at: row.began_at.toISOString(), opened_at: row.opened_at.toISOString() },
    closed_at: row.closed_at?.toISOString() ?? null,
    detected_after_seconds: seconds(row.began_at, row.opened_at),
    detect_within_seconds: row.detect_seconds,
    repaired_after_seconds: row.closed_at ? seconds(row.opened_at, row.closed_at) : null,
    repair_within: Number.isNaN(repair) ? (row.repair_within as "automatic" | "next_business_day") : repair,
  };
}

function presentEvidence(one: Observation, fresh: boolean): Explanation["evidence"][number] {
  const { id, kind, key, value, observer, detail, observedAt, firstAt, receivedAt } = one;
  return {
    ...{ id, kind, key: key ?? null, value, observer, fresh, detail: detail ? { ...detail } : null },
    observed_at: new Date(observedAt).toISOString(),
    first_observed_at: new Date(firstAt ?? observedAt).toISOString(),
    received_at: new Date(receivedAt).toISOString(),
  };
}
