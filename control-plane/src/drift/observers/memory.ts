// What an observer last saw of each node that reports to this process. A forgotten one is observed again.

export type Memory = {
  /** Whether it differs from what was seen last; remembers it. */
  isNews(nodeId: string, seen: string): boolean;
  forget(nodeId: string): void;
};

const MOST_REMEMBERED = 50_000;

export function createMemory(most = MOST_REMEMBERED): Memory {
  const last = new Map<string, string>();
  return {
    isNews(nodeId, seen) {
      const same = last.get(nodeId) === seen;
      last.delete(nodeId);
      for (const oldest of last.keys().take(last.size >= most ? 1 : 0)) last.delete(oldest);
      last.set(nodeId, seen);
      return !same;
    },
    forget: (nodeId) => void last.delete(nodeId),
  };
}
