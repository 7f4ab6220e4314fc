// Which gateway a terminal is at. A client and a node must meet at the same one; with one gateway that is
// always this one, and memory is enough. Several gateways need a store that all of them see.

export type Bindings = {
  /** Takes the session for this gateway. Resolves with the owner: this gateway, or the one that was faster. */
  take(sessionId: string): Promise<{ owner: string }>;
  release(sessionId: string): Promise<void>;
};

export type MemoryBindings = Bindings & { size(): number };

export function memoryBindings(owner: string): MemoryBindings {
  const taken = new Set<string>();
  return {
    async take(sessionId) {
      taken.add(sessionId);
      return { owner };
    },
    async release(sessionId) {
      taken.delete(sessionId);
    },
    size: () => taken.size,
  };
}
