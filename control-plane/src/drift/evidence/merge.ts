// What becomes of new observations beside those that are stored. Pure: the writer carries it out.

/** The newest observation of a node, kind and key. */
export type Newest = {
  id: string;
  place: string;
  value: string;
  observedAt: number;
  seenAt: number;
  /** As JSON. Only compared for those that are steady. */
  detail?: string | null;
};

export type Given<Observation> = {
  place: string;
  value: string;
  observedAt: number;
  /** It holds until it changes: an unchanged one is not even repeated. */
  steady?: boolean | undefined;
  detail?: string | null;
  /** As the writer wants it back. */
  observation: Observation;
};

export type Plan<Observation> = {
  /** Observations to append. `replaced`: another one is newer, so it is history at once. */
  append: { id: string; observation: Observation; seenAt: number; replaced: boolean }[];
  /** Ids of stored ones that are no longer the newest. */
  replace: string[];
  /** Stored ones that were observed again, unchanged. */
  repeat: { id: string; observation: Observation; seenAt: number }[];
  /** What has an effect. */
  used: Observation[];
};

/** In any order: what is given is sorted by the time it was observed. */
export function planWrites<Observation>(
  given: readonly Given<Observation>[],
  stored: readonly Newest[],
  newId: () => string,
): Plan<Observation> {
  const newest = new Map(stored.map((one) => [one.place, one]));
  const appended = new Map<string, Plan<Observation>["append"][number]>();
  const repeated = new Map<string, Plan<Observation>["repeat"][number]>();
  const replace: string[] = [];
  const used: Observation[] = [];
  for (const { place, value, observedAt, steady, detail = null, observation } of given.toSorted(
    (a, b) => a.observedAt - b.observedAt,
  )) {
    const known = newest.get(place);
    if (steady && known?.value === value && (known.detail ?? null) === detail) continue;
    const merged = mergeObservation(known, { value, observedAt });
    if (merged === "ignore") continue;
    used.push(observation);
    if (known && merged === "repeat") {
      newest.set(place, { ...known, seenAt: observedAt, detail });
      const own = appended.get(known.id);
      if (own) own.seenAt = observedAt;
      else repeated.set(known.id, { id: known.id, observation, seenAt: observedAt });
      continue;
    }
    const id = newId();
    appended.set(id, { id, observation, seenAt: observedAt, replaced: merged === "late" });
    if (merged === "late") continue;
    const own = known && appended.get(known.id);
    if (own) own.replaced = true;
    else if (known) replace.push(known.id);
    newest.set(place, { id, place, value, observedAt, seenAt: observedAt, detail });
  }
  return { append: [...appended.values()], replace, repeat: [...repeated.values()], used };
}

/**
 * - `first`: there was none; `replace`: another value, observed later;
 * - `repeat`: the same value, observed later; `late`: observed before what is already known, kept as history;
 * - `ignore`: the same observation again.
 */
type Merged = "first" | "replace" | "repeat" | "late" | "ignore";

function mergeObservation(known: Newest | undefined, next: { value: string; observedAt: number }): Merged {
  if (!known) return "first";
  if (next.value === known.value) return next.observedAt > known.seenAt ? "repeat" : "ignore";
  if (next.observedAt > known.seenAt) return "replace";
  return next.observedAt === known.observedAt ? "ignore" : "late";
}
