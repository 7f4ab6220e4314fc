// The shape of a rule: which facts together mean which reason. The words and the usual answer of a reason are in the
// catalogue; a rule names only what differs from it.

import type { causeConfidences, causeLayers } from "@holdfast/contracts/endpoints/drift";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import type { NextAction, Severity, UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Fact, FactValue } from "./facts.ts";

/** Where the fault lies. `platform`: in the control plane itself, felt by every node behind it. */
export type Layer = (typeof causeLayers)[number];
export type Confidence = (typeof causeConfidences)[number];

/** In seconds. A repair without a number happens by itself, or is no emergency. */
export type Budget = { detect: number; repair: number | "automatic" | "next_business_day" };

type AnyOf<F extends Fact> = FactValue<F> | readonly FactValue<F>[];
/** All of them hold. A fact that is not known does not hold. */
export type Condition = { readonly [F in Fact]?: AnyOf<F> };

export type Rule = {
  reason: ReasonCode;
  /** What dashboards and alarms call it. Null: they have no name of their own for it. */
  signal: string | null;
  layer: Layer;
  when: Condition;
  /** None of them holds. A fact that is not known does not hold. */
  unless?: Condition;
  confidence: Confidence;
  /** What differs from the catalogue's answer. */
  answer?: { owner?: OwnerId; severity?: Severity; userState?: UserState; nextAction?: NextAction };
  /** What differs from the budget of its severity. */
  budget?: Partial<Budget>;
  alsoInvolves?: readonly OwnerId[];
  /** Whose words are used, where those of the reason would claim more than the facts do. */
  spokenAs?: ReasonCode;
  /** In place of the catalogue's. */
  nextStep?: string;
  /** The one observation that would change the verdict. */
  changedBy: string;
};

export const budgets: Readonly<Record<Severity, Budget>> = {
  P0: { detect: 60, repair: 900 },
  P1: { detect: 300, repair: 3_600 },
  P2: { detect: 1_800, repair: "next_business_day" },
};
