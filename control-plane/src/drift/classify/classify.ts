// The one place that decides what is wrong with a node. A pure and total function of evidence, policy and time. It returns
// the independent causes, worst first; what is only a symptom of one of them is listed with it.

import { causeConfidences, type RecoveryCheck } from "@holdfast/contracts/endpoints/drift";
import { isReason, type ReasonCode, reasons } from "@holdfast/contracts/reasons/catalogue";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import {
  type NextAction,
  type Severity,
  severities,
  type UserState,
  userStates,
} from "@holdfast/contracts/reasons/vocabulary";
import type { Kind, Observation } from "../evidence/observation.ts";
import type { Known } from "./collector.ts";
import { deriveFacts, type Policy } from "./derive.ts";
import type { Fact, Facts } from "./facts.ts";
import { type Budget, budgets, type Condition, type Confidence, type Layer, type Rule } from "./rule.ts";
import { rules } from "./rules.ts";
import { spokenCode } from "./spoken.ts";

export type Cause = {
  /** Of the catalogue; only a code that a newer agent invented is not in it. */
  reason: string;
  signal: string | null;
  layer: Layer;
  confidence: Confidence;
  userState: UserState;
  severity: Severity;
  owner: OwnerId;
  alsoInvolves: readonly OwnerId[];
  nextAction: NextAction;
  budget: Budget;
  /** When the first of its evidence was observed. */
  since: number;
  evidence: readonly Observation[];
  /** Reasons that hold, too, and that this one explains. */
  symptoms: readonly string[];
  /** The one observation that would change the verdict. */
  changedBy: string;
  /** Whose title and message to use: what was observed, or the reason's own; never one that claims more than is known. */
  spokenAs: string;
  /** Undefined: as the catalogue says. */
  nextStep: string | undefined;
  /** Of a recovery that is being checked: what was not seen yet. */
  missing?: readonly RecoveryCheck[];
};

export type Verdict = {
  /** Independent of each other, worst first. The first one is the headline. */
  causes: readonly Cause[];
  /** Of a workload on the node of which nothing else is known. */
  userState: UserState;
  /** Its heartbeats are current. */
  reporting: boolean;
  /** When time alone may change the verdict, apart from missing heartbeats; undefined: never. */
  reviewAt: number | undefined;
  /** When heartbeats are missing unless one arrives. */
  silentAt: number | undefined;
};

export function classify(evidence: readonly Observation[], policy: Policy, now: number): Verdict {
  const known = deriveFacts(evidence, policy, now);
  return { ...verdictOf(known), reviewAt: known.reviewAt, silentAt: known.silentAt };
}

/** Only where there is no better evidence. Whether operators can log in says nothing about an agent. */
const LAST_RESORT: ReasonCode = "node_agent_unreachable";
const isBetterEvidence = ({ reason }: Cause) =>
  reason !== LAST_RESORT && !(isReason(reason) && reasons[reason].class === "access");

type Found = Omit<Known, "reviewAt" | "silentAt">;

/** From facts alone. */
export function verdictOf(known: Found): Omit<Verdict, "reviewAt" | "silentAt"> {
  const all = causesOf(known);
  const held = all.some(isBetterEvidence) ? all.filter(({ reason }) => reason !== LAST_RESORT) : all;
  const causes = held
    .filter((one) => !held.some((other) => isSymptomOf(one, other)))
    .map((cause) => ({ ...cause, symptoms: symptomsOf(cause, held) }))
    .sort(byUrgency);
  const userState = causes.reduce<UserState>((worst, { userState: state }) => worseOf(worst, state), "normal");
  return { causes, userState, reporting: known.facts.heartbeat === "current" };
}

function causesOf(known: Found): Cause[] {
  const { facts, reported } = known;
  if (facts.node_standing === "retired" && facts.task_wait !== "denied") return [];
  const found = new Map<string, Cause>();
  for (const rule of rules) {
    if (found.has(rule.reason) || !holds(rule, facts)) continue;
    found.set(rule.reason, causeOf(rule, known));
  }
  for (const [code, source] of reported) {
    if (!found.has(code)) found.set(code, reportedCause(code, source, facts));
  }
  return [...found.values()];
}

function holds({ when, unless }: Rule, facts: Facts): boolean {
  for (const fact in when) if (!has(facts, fact as Fact, when)) return false;
  if (unless) for (const fact in unless) if (has(facts, fact as Fact, unless)) return false;
  return true;
}

function has(facts: Facts, fact: Fact, condition: Condition): boolean {
  const value = facts[fact];
  const wanted = condition[fact];
  if (value === undefined) return false;
  return typeof wanted === "string" ? wanted === value : (wanted as readonly string[]).includes(value);
}

function causeOf(rule: Rule, { facts, sources }: Found): Cause {
  const { reason, signal, layer, alsoInvolves = [], changedBy } = rule;
  const usual = reasons[reason];
  const severity = rule.answer?.severity ?? usual.severity ?? "P2";
  const evidence = [...new Set(Object.keys(rule.when).flatMap((fact) => sources.get(fact as Fact) ?? []))];
  const outdated = evidence.some((one) => isOutdated(one, facts));
  return {
    ...{ reason, signal, layer, severity, alsoInvolves, changedBy, evidence, symptoms: [] },
    ...{ spokenAs: spokenCode(rule, evidence), nextStep: rule.nextStep },
    confidence: outdated && rule.confidence === "high" ? "medium" : rule.confidence,
    userState: rule.answer?.userState ?? usual.userState,
    owner: rule.answer?.owner ?? usual.owner ?? "node_runtime",
    nextAction: rule.answer?.nextAction ?? usual.nextAction,
    budget: { ...budgets[severity], ...rule.budget },
    since: Math.min(...evidence.map(beganAt)),
  };
}

const beganAt = ({ firstAt, observedAt }: Observation) => firstAt ?? observedAt;

/** What an agent reports in a code of its own stands for itself. */
function reportedCause(code: string, source: Observation, facts: Facts): Cause {
  const usual = isReason(code) ? reasons[code as ReasonCode] : undefined;
  const severity = usual?.severity ?? "P2";
  return {
    ...{ reason: code, layer: "management", severity, alsoInvolves: [], symptoms: [], evidence: [source] },
    signal: usual && "signal" in usual ? (usual.signal ?? null) : null,
    confidence: isOutdated(source, facts) ? "medium" : "high",
    userState: usual?.userState ?? "normal",
    owner: usual?.owner ?? "node_runtime",
    nextAction: usual?.nextAction ?? "restart_agent",
    budget: budgets[severity],
    since: beganAt(source),
    changedBy: "a heartbeat without this finding",
    ...{ spokenAs: code, nextStep: undefined },
  };
}

const isReported: ReadonlySet<Kind> = new Set(["finding", "clock", "disk", "profile"]);

/** The last heartbeat said so, and none came since. */
function isOutdated({ kind }: Observation, facts: Facts): boolean {
  return facts.heartbeat !== "current" && isReported.has(kind);
}

function isSymptomOf({ reason }: Cause, other: Cause): boolean {
  return reason !== other.reason && isReason(reason) && reasons[reason].dependsOn.includes(other.reason);
}

/** Also those that it explains by way of others. */
function symptomsOf(cause: Cause, held: readonly Cause[]): string[] {
  const explained = new Set<Cause>([cause]);
  for (const one of explained) {
    for (const other of held) if (isSymptomOf(other, one)) explained.add(other);
  }
  explained.delete(cause);
  return [...explained].map(({ reason }) => reason).sort();
}

function byUrgency(a: Cause, b: Cause): number {
  return (
    severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
    userStates.indexOf(b.userState) - userStates.indexOf(a.userState) ||
    causeConfidences.indexOf(a.confidence) - causeConfidences.indexOf(b.confidence) ||
    a.since - b.since ||
    (a.reason < b.reason ? -1 : 1)
  );
}

/** `userStates` is in the order of urgency. */
function worseOf(a: UserState, b: UserState): UserState {
  return userStates.indexOf(b) > userStates.indexOf(a) ? b : a;
}
