// Which check of a preflight is made next, and what the checks made so far mean. Pure, so that the command line, the api and
// the tests decide alike.

import type { ReasonCode } from "../reasons/catalogue.ts";
import { type CheckNeeds, checkOf, type PreflightHop, type PreflightOmission, preflightHops } from "./checks.ts";

export type Outcome =
  | { status: "passed" }
  | { status: "failed"; code: ReasonCode }
  | { status: "not_run"; why: PreflightOmission };

export type Outcomes = ReadonlyMap<PreflightHop, Outcome>;

export type Plan = {
  /** Without an allocation, only the node is checked. */
  scope: CheckNeeds;
  /** Goes on after a failed check. */
  all: boolean;
};

export const isRequested = (hop: PreflightHop, scope: CheckNeeds): boolean =>
  scope === "allocation" || checkOf(hop).needs === "node";

const isFailed = (outcome: Outcome | undefined) => outcome?.status === "failed";

/** Undefined: the run is over. */
export function nextHop({ scope, all }: Plan, made: Outcomes): PreflightHop | undefined {
  const open = preflightHops.filter((hop) => isRequested(hop, scope) && !made.has(hop));
  const first = firstFailed(made);
  if (first === undefined || all) return open[0];
  if (!checkOf(first).symptom || causeOf(made) !== first) return undefined;
  return open.find((hop) => checkOf(hop).causeOfSymptom);
}

export type Conclusion = {
  /** `incomplete`: nothing failed, and something that was to be checked could not be. */
  result: "ready" | "failed" | "incomplete";
  failed_hop: PreflightHop | null;
  /** The check that failed first, if another one is the cause. */
  symptom_hop: PreflightHop | null;
};

export function conclude({ scope }: Pick<Plan, "scope">, made: Outcomes): Conclusion {
  const first = firstFailed(made);
  if (first !== undefined) {
    const cause = causeOf(made) as PreflightHop;
    return { result: "failed", failed_hop: cause, symptom_hop: cause === first ? null : first };
  }
  const proved = preflightHops.every((hop) => !isRequested(hop, scope) || made.get(hop)?.status === "passed");
  return { result: proved ? "ready" : "incomplete", failed_hop: null, symptom_hop: null };
}

/** Every hop has an outcome. */
export function completed({ scope }: Pick<Plan, "scope">, made: Outcomes): Map<PreflightHop, Outcome> {
  return new Map(
    preflightHops.map((hop) => {
      const why = isRequested(hop, scope) ? "after_failure" : "not_requested";
      return [hop, made.get(hop) ?? { status: "not_run", why }];
    }),
  );
}

const firstFailed = (made: Outcomes) => preflightHops.find((hop) => isFailed(made.get(hop)));

/** What failed first; of a symptom, the first place that explains it, and the symptom only if none does. */
function causeOf(made: Outcomes): PreflightHop | undefined {
  const first = firstFailed(made);
  if (first === undefined || !checkOf(first).symptom) return first;
  const explanation = preflightHops.find((hop) => checkOf(hop).causeOfSymptom && isFailed(made.get(hop)));
  return explanation ?? first;
}
