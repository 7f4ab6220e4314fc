// Collects facts from observations. The newest observation of a kind counts while it is fresh; the first source of a fact
// stands, so facts are collected in the order of trust.

import { type DiagnosticReason, nodeReason } from "@holdfast/contracts/reasons/node";
import { freshForMs, type Kind, type Observation, type ObservationOf } from "../evidence/observation.ts";
import type { Fact, Facts, FactValue } from "./facts.ts";
import { factsOfDiagnostic } from "./reported.ts";

export type Known = {
  facts: Facts;
  /** What each fact rests on. */
  sources: ReadonlyMap<Fact, Observation>;
  /** Codes that agents report and no fact stands for. */
  reported: ReadonlyMap<string, Observation>;
  /** When time alone may change a fact next, apart from missing heartbeats. */
  reviewAt: number | undefined;
  /** When heartbeats are missing unless one arrives; undefined: they already are, or never were any. */
  silentAt: number | undefined;
};

export type Collector = ReturnType<typeof createCollector>;

export function createCollector(evidence: readonly Observation[], now: number) {
  const newest = newestOf(evidence);
  const facts: Facts = {};
  const sources = new Map<Fact, Observation>();
  const reported = new Map<string, Observation>();
  let reviewAt: number | undefined;
  let silentAt: number | undefined;

  function review(at: number): void {
    if (at > now && (reviewAt === undefined || at < reviewAt)) reviewAt = at;
  }
  /** The newest one, however old it is. */
  function last<K extends Kind>(kind: K, key?: string): ObservationOf<K> | undefined {
    return newest.get(key === undefined ? kind : `${kind} ${key}`) as ObservationOf<K> | undefined;
  }
  function fresh<K extends Kind>(kind: K, key?: string): ObservationOf<K> | undefined {
    const found = last(kind, key);
    const limit = freshForMs[kind];
    if (!found || limit === null) return found;
    const until = found.observedAt + limit;
    review(until);
    return until > now ? found : undefined;
  }
  function set<F extends Fact>(fact: F, value: FactValue<F>, source: Observation): void {
    if (facts[fact] !== undefined) return;
    (facts as Record<Fact, string>)[fact] = value;
    sources.set(fact, source);
  }
  function setAll(all: Facts, source: Observation): void {
    for (const [fact, value] of Object.entries(all)) set(fact as Fact, value as FactValue<Fact>, source);
  }
  return {
    now,
    facts,
    sources: sources as ReadonlyMap<Fact, Observation>,
    review,
    expectHeartbeatBefore(at: number): void {
      silentAt = at;
    },
    last,
    fresh,
    set,
    setAll,
    /** Those present, the newest first. */
    findings: () =>
      [...newest.values()]
        .filter((one) => one.kind === "finding" && one.value === "present")
        .sort((a, b) => (isLater(a, b) ? -1 : 1)),
    /** A code of the agent's own: its facts, or itself. */
    report(code: string, source: Observation): void {
      const meaning = factsOfDiagnostic[code as DiagnosticReason];
      if (meaning) setAll(meaning, source);
      else if (nodeReason(code)?.class !== "none" && !reported.has(code)) reported.set(code, source);
    },
    known: (): Known => ({ facts, sources, reported, reviewAt, silentAt }),
  };
}

/** By kind, and by key where a kind has several. Of two at the same time, the one received later. */
function newestOf(evidence: readonly Observation[]): Map<string, Observation> {
  const newest = new Map<string, Observation>();
  for (const one of evidence) {
    const place = one.key === undefined ? one.kind : `${one.kind} ${one.key}`;
    const before = newest.get(place);
    if (!before || isLater(one, before)) newest.set(place, one);
  }
  return newest;
}

function isLater(one: Observation, other: Observation): boolean {
  if (one.observedAt !== other.observedAt) return one.observedAt > other.observedAt;
  if (one.receivedAt !== other.receivedAt) return one.receivedAt > other.receivedAt;
  return one.id > other.id;
}
