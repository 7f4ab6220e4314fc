// A verdict as the API presents it.

import type { Explanation, Cause as PresentedCause } from "@holdfast/contracts/endpoints/drift";
import { presentReason, titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { Cause, Verdict } from "../classify/classify.ts";
import type { Policy } from "../classify/derive.ts";
import { presentShared, titleOfCause } from "../common-cause/words.ts";
import type { Observation } from "../evidence/observation.ts";
import { layersOf } from "../verdicts/layers.ts";
import { messageOf, nextStepOf } from "../verdicts/message.ts";
import { checklistOf } from "./checklist.ts";
import { isFresh, partsOf } from "./parts.ts";
import type { CommonRow, IncidentRow } from "./queries.ts";
import { headlineOf } from "./words.ts";

export function explain(
  node: { id: string; name: string },
  known: {
    evidence: readonly Observation[];
    verdict: Verdict;
    proofAfter: number | undefined;
    incidents: readonly IncidentRow[];
    policy: Policy;
    partOf: CommonRow | undefined;
    clone: Explanation["clone"];
    now: Date;
  },
): Explanation {
  const { evidence, verdict, incidents, policy, proofAfter } = known;
  const { causes, userState } = verdict;
  const now = known.now.getTime();
  const open = incidents.find(({ closed_at }) => closed_at === null);
  return {
    ...{ node_id: node.id, node_name: node.name, at: known.now.toISOString() },
    headline: headlineOf({ name: node.name, causes, evidence, now }),
    healthy: causes.length === 0,
    user_state: userState,
    causes: causes.map((cause) => presentCause(cause, now)),
    layers: layersOf(verdict, evidence, now),
    checklist: checklistOf(evidence, {
      policy,
      now,
      incidentBeganAt: incidents[0]?.began_at.getTime(),
      proofAfter,
    }),
    repaired_at: proofAfter === undefined ? null : new Date(proofAfter).toISOString(),
    parts: partsOf(evidence, verdict, now),
    incident: open
      ? { id: open.id, began_at: open.began_at.toISOString(), opened_at: open.opened_at.toISOString() }
      : null,
    part_of: presentPartOf(known.partOf),
    clone: known.clone,
    history: incidents.map(presentIncident),
    evidence: evidence
      .map((one) => presentEvidence(one, isFresh(one, verdict, now)))
      .sort((a, b) => (a.observed_at > b.observed_at ? -1 : 1)),
  };
}

function presentPartOf(row: CommonRow | undefined): Explanation["part_of"] {
  if (!row?.attribute) return null;
  const { id, reason, attribute, value, began_at } = row;
  return {
    ...{ incident_id: id, reason, title: titleOfCause(row), began_at: began_at.toISOString() },
    shared: presentShared({ ...row, attribute, value: value ?? "" }, "your nodes"),
  };
}

function presentCause(cause: Cause, now: number): PresentedCause {
  const { reason, signal, layer, confidence, severity, owner, nextAction, budget } = cause;
  return {
    ...{ reason, signal, layer, confidence },
    ...presentReason(reason),
    ...{ severity, owner_id: owner, next_action: nextAction },
    message: messageOf(cause, now),
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
  const { id, kind, key, value, observer, detail, observedAt, firstAt, receivedAt, correlationId } = one;
  return {
    ...{ id, kind, key: key ?? null, value, observer, fresh, detail: detail ? { ...detail } : null },
    correlation_id: correlationId ?? null,
    observed_at: new Date(observedAt).toISOString(),
    first_observed_at: new Date(firstAt ?? observedAt).toISOString(),
    received_at: new Date(receivedAt).toISOString(),
  };
}
