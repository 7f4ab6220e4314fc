// What becomes of a new observation beside the newest one of its kind and key. Pure: the writer carries it out.

export type Newest = { value: string; observedAt: number; seenAt: number };

/**
 * - `first`: there was none; `replace`: another value, observed later;
 * - `repeat`: the same value, observed later; `late`: observed before what is already known, kept as history;
 * - `ignore`: the same observation again.
 */
export type Merged = "first" | "replace" | "repeat" | "late" | "ignore";

export function mergeObservation(known: Newest | undefined, next: { value: string; observedAt: number }): Merged {
  if (!known) return "first";
  if (next.value === known.value) return next.observedAt > known.seenAt ? "repeat" : "ignore";
  if (next.observedAt > known.seenAt) return "replace";
  return next.observedAt === known.observedAt ? "ignore" : "late";
}
