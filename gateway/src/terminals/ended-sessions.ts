// Remembers which terminals ended here recently, up to a limit, so that a node that does not know of the end cannot
// start one again.

const MOST_REMEMBERED = 10_000;

export type EndedSessions = { add(id: string): void; has(id: string): boolean };

export function createEndedSessions(most = MOST_REMEMBERED): EndedSessions {
  const ids = new Set<string>();
  return {
    add(id) {
      ids.add(id);
      if (ids.size <= most) return;
      const [oldest] = ids;
      if (oldest !== undefined) ids.delete(oldest);
    },
    has: (id) => ids.has(id),
  };
}
