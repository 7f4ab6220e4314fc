// Whether a node without a cause is healthy. After a repair that needs proof it is so only when all five lines of the
// checklist were seen since, over the link of the instance that reports now. Pure; what is wrong is decided in `classify/`,
// and while a cause is found its verdict stands as it is.

import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { reasons } from "@holdfast/contracts/reasons/catalogue";
import type { Cause, Verdict } from "../classify/classify.ts";
import type { Policy } from "../classify/derive.ts";
import { budgets } from "../classify/rule.ts";
import type { Observation } from "../evidence/observation.ts";
import { checklistOf } from "../explanation/checklist.ts";
import type { Seen } from "../verdicts/message.ts";
import { needsProof } from "./needs-proof.ts";

export type Checklist = Explanation["checklist"];

/** What is known of the node's open incident; undefined: it has none. */
export type OpenIncident = {
  /** As it was stored; null: so far no cause of it needs proof. */
  proofAfter: number | null;
  /** When it was noticed; null: right now. */
  openedAt: number | null;
  /** Of the verdict before this one. */
  causes: readonly PastCause[];
};
export type PastCause = { reason: string; observed?: readonly Seen[] | undefined };

export type Gated = {
  verdict: Verdict;
  /** Evidence of the recovery has to be later; undefined: no proof is needed. */
  proofAfter: number | undefined;
  /** Of a node without any cause whose recovery has to be proved. All done: it is. */
  checklist: Checklist | undefined;
};

type Known = {
  /** With what its tasks show (`work.ts`). */
  evidence: readonly Observation[];
  incident: OpenIncident | undefined;
  policy: Policy;
  now: number;
};

export function gate(verdict: Verdict, { evidence, incident, policy, now }: Known): Gated {
  const proofAfter = incident && proofNeededAfter(incident, evidence);
  const isRetired = evidence.some(({ kind, value }) => kind === "standing" && value === "retired");
  if (verdict.causes.length > 0 || proofAfter === undefined || isRetired) {
    return { verdict, proofAfter, checklist: undefined };
  }
  const checklist = checklistOf(evidence, { policy, now, incidentBeganAt: undefined, proofAfter });
  const missing = checklist.filter(({ state }) => state !== "done").map(({ check }) => check);
  if (missing.length === 0) return { verdict, proofAfter, checklist };
  const cause = checkingCause(missing, proofAfter);
  return { verdict: { ...verdict, causes: [cause], userState: cause.userState }, proofAfter, checklist };
}

/** Whether a verdict is that the recovery is being checked. */
export const isChecking = (causes: readonly Pick<Cause, "missing">[]) => causes[0]?.missing !== undefined;

/**
 * The last time that a cause was seen which needs proof, or that something was done about it. Undefined: none was. A new
 * identity needs proof, whatever the server could see of the reason why the node asked for it.
 */
export function proofNeededAfter(
  { proofAfter, openedAt, causes }: OpenIncident,
  evidence: readonly Observation[],
): number | undefined {
  const seen = causes
    .filter(({ reason }) => needsProof(reason))
    .flatMap(({ observed = [] }) => observed.map(({ observedAt }) => observedAt));
  const identities = evidence.filter(isNewIdentity).map(({ observedAt }) => observedAt);
  const inItsCourse = identities.filter((at) => openedAt !== null && at > openedAt);
  const last = Math.max(proofAfter ?? Number.NEGATIVE_INFINITY, ...seen, ...inItsCourse);
  return Number.isFinite(last) ? Math.max(last, ...repairsIn(evidence)) : undefined;
}

/** A renewal is no repair. */
const isNewIdentity = ({ kind, detail }: Observation) =>
  kind === "certificate" && detail?.["issued_for"] !== "renewal";

/** When identity, standing and the platform's trust became what they are. */
function repairsIn(evidence: readonly Observation[]): number[] {
  return evidence.flatMap((one) => {
    const { kind, value, observedAt, firstAt = observedAt } = one;
    if (kind === "certificate") return isNewIdentity(one) ? [observedAt] : [];
    if (kind === "standing") return [observedAt];
    return (kind === "ca_trust" && value === "match") || kind === "signing_ca" ? [firstAt] : [];
  });
}

function checkingCause(missing: NonNullable<Cause["missing"]>, since: number): Cause {
  const { severity, owner, userState, nextAction } = reasons.recovery_unverified;
  const urgency = severity ?? "P2";
  return {
    ...{ reason: "recovery_unverified", spokenAs: "recovery_unverified", signal: null, layer: "management" },
    ...{ confidence: "high", userState, severity: urgency, owner: owner ?? "node_enrollment", nextAction },
    ...{
      alsoInvolves: [],
      budget: { ...budgets[urgency], repair: "automatic" },
      since,
      evidence: [],
      symptoms: [],
    },
    ...{ changedBy: "the missing checks, observed after the repair", nextStep: undefined, missing },
  };
}
