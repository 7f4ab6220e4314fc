// Limits on what anyone can cause to be stored: so many in a time, in all and by each key. In memory, and bounded.

export type Limit<Subject> = { most: number; keyOf(subject: Subject): string };

const MOST_KEYS = 10_000;

/** Returns a function that takes one from each limit, or none: then false. */
export function createLimits<Subject>(
  limits: readonly Limit<Subject>[],
  { windowMs, now }: { windowMs: number; now: () => number },
): (subject: Subject) => boolean {
  const taken = new Map<string, { count: number; endsAt: number }>();
  const current = (key: string) => {
    const found = taken.get(key);
    return found && found.endsAt > now() ? found : { count: 0, endsAt: now() + windowMs };
  };
  return (subject) => {
    const all = limits.map(({ most, keyOf }) => ({ key: keyOf(subject), most }));
    if (all.some(({ key, most }) => current(key).count >= most)) return false;
    for (const { key } of all) {
      const { count, endsAt } = current(key);
      taken.delete(key);
      for (const oldest of taken.keys().take(taken.size >= MOST_KEYS ? 1 : 0)) taken.delete(oldest);
      taken.set(key, { count: count + 1, endsAt });
    }
    return true;
  };
}
