// What an allocation's people see: one of five states. A node's causes reach every allocation on it, except those that
// are about another one, and those that evidence of the allocation itself disproves. Pure.

import { type UserState, userStates } from "@holdfast/contracts/reasons/vocabulary";
import type { Cause } from "../classify/classify.ts";
import { freshForMs } from "../evidence/observation.ts";

/** The kinds of observations that can be about one allocation, by their key or `allocation_id` of their detail. */
export const ownKinds = ["terminal", "app_status", "app_endpoint"] as const;
export type OwnKind = (typeof ownKinds)[number];
/** Of one allocation; the newest of each kind counts. */
export type OwnEvidence = { kind: OwnKind; value: string; observedAt: number };

export type TenantPolicy = {
  /** How long each kind of evidence shows that the allocation works. */
  worksForMs: Readonly<Record<OwnKind, number>>;
};

/** A terminal is known to work while it is used, so its evidence is renewed all the time. */
export const tenantPolicy: TenantPolicy = {
  worksForMs: {
    terminal: 60_000,
    app_status: freshForMs.app_status ?? 0,
    app_endpoint: freshForMs.app_endpoint ?? 0,
  },
};

export type Affecting = Pick<Cause, "layer" | "severity" | "userState"> & {
  evidence: readonly { kind: string; key?: string | undefined; observedAt: number; detail?: Detail | undefined }[];
};
type Detail = Readonly<Record<string, unknown>>;
/** `until`: when time alone makes it too old. */
type Working = { at: number; until: number };

export type Assessed = {
  state: UserState;
  /** When time alone may change it, because it rests on evidence of the allocation itself; undefined: never. */
  reviewAt: number | undefined;
};

export function userStateOf(
  causes: readonly Affecting[],
  allocation: { id: string; evidence: readonly OwnEvidence[] },
  policy: TenantPolicy,
  now: number,
): Assessed {
  const working = workingSince(allocation.evidence, policy, now);
  const concerned = causes.filter((cause) => concerns(cause, allocation.id));
  const standing = concerned.filter((cause) => !(working && isDisproved(cause, working)));
  const state = standing.reduce<UserState>((worst, { userState }) => worseOf(worst, userState), "normal");
  return { state, reviewAt: working && standing.length < concerned.length ? working.until : undefined };
}

function concerns({ evidence }: Affecting, allocationId: string): boolean {
  const named = evidence.flatMap(({ kind, key, detail }) => {
    const id = detail?.["allocation_id"] ?? (isOwnKind(kind) ? key : undefined);
    return typeof id === "string" ? [id] : [];
  });
  return named.length === 0 || named.includes(allocationId);
}

/**
 * That a node cannot be managed says nothing about what runs on it. Where the way to the workload or the workload itself
 * failed, only something that worked later counts. What endangers tenants or loses safe lifecycle guarantees (P0) stands.
 */
function isDisproved({ layer, severity, userState, evidence }: Affecting, working: Working): boolean {
  if (severity === "P0" || userState === "security_action_required") return false;
  if (layer === "management" || layer === "platform") return true;
  const direct = evidence.filter(({ kind }) => isOwnKind(kind));
  return (direct.length > 0 ? direct : evidence).every(({ observedAt }) => observedAt < working.at);
}

/** A shell that works, or an app that runs and is reachable; and nothing of the allocation that failed since. */
function workingSince(
  evidence: readonly OwnEvidence[],
  { worksForMs }: TenantPolicy,
  now: number,
): Working | undefined {
  const fresh = new Map<OwnKind, OwnEvidence>();
  for (const one of evidence) {
    const before = fresh.get(one.kind);
    const counts = one.observedAt + worksForMs[one.kind] > now && !(before && isPreferred(before, one));
    if (counts) fresh.set(one.kind, one);
  }
  if ([...fresh.values()].some((one) => !isGood(one))) return undefined;
  const shell = fresh.get("terminal");
  const [app, route] = [fresh.get("app_status"), fresh.get("app_endpoint")];
  const proofs = [...(shell ? [[shell]] : []), ...(app && route ? [[app, route]] : [])].map((seen) => ({
    at: Math.min(...seen.map(({ observedAt }) => observedAt)),
    until: Math.min(...seen.map(({ kind, observedAt }) => observedAt + worksForMs[kind])),
  }));
  return proofs.toSorted((a, b) => b.at - a.at)[0];
}

const goodValues: Readonly<Record<OwnKind, string>> = {
  terminal: "ready",
  app_status: "running",
  app_endpoint: "succeeded",
};
const isGood = ({ kind, value }: OwnEvidence) => value === goodValues[kind];

/** The later one; of two at the same time the bad one. */
function isPreferred(one: OwnEvidence, other: OwnEvidence): boolean {
  return one.observedAt === other.observedAt ? !isGood(one) : one.observedAt > other.observedAt;
}

const isOwnKind = (kind: string): kind is OwnKind => (ownKinds as readonly string[]).includes(kind);

/** `userStates` is in the order of urgency. */
function worseOf(a: UserState, b: UserState): UserState {
  return userStates.indexOf(b) > userStates.indexOf(a) ? b : a;
}
