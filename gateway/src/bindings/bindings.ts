// Which gateway has a terminal: the one that its client is at. A node's stream that reaches another gateway is passed on to
// it. With one gateway memory is enough; several need a store that all of them see.

/** A gateway, and where other gateways reach its node-facing listener. */
export type Owner = { id: string; url: string };

/** `taken_over`: a newer client attached at another gateway. `elsewhere`: another gateway has it for any other reason. */
export type Lost = "taken_over" | "elsewhere";

export type Bindings = {
  /** Undefined: no gateway has it. Rejects with BindingsUnreachable. */
  ownerOf(sessionId: string): Promise<Owner | undefined>;
  /**
   * For a stream that found no owner: takes the terminal unless another gateway was faster. Resolves with the owner. Rejects
   * with BindingsUnreachable, and publishes the binding as soon as the store is reachable.
   */
  take(sessionId: string): Promise<Owner>;
  /** For a client: takes it from whichever gateway has it. Rejects as `take` does. */
  takeOver(sessionId: string): Promise<void>;
  release(sessionId: string): Promise<void>;
  /** Whether other gateways can find this terminal here. */
  isPublished(sessionId: string): boolean;
  isReachable(): boolean;
  /** The terminals of this gateway. */
  size(): number;
  stop(): Promise<void>;
};

/** The store does not respond: it is not known which gateway has a terminal. */
export class BindingsUnreachable extends Error {
  override name = "BindingsUnreachable";
}

export function memoryBindings(self: () => Owner): Bindings {
  const taken = new Set<string>();
  return {
    ownerOf: async (sessionId) => (taken.has(sessionId) ? self() : undefined),
    async take(sessionId) {
      taken.add(sessionId);
      return self();
    },
    async takeOver(sessionId) {
      taken.add(sessionId);
    },
    async release(sessionId) {
      taken.delete(sessionId);
    },
    isPublished: (sessionId) => taken.has(sessionId),
    isReachable: () => true,
    size: () => taken.size,
    stop: async () => undefined,
  };
}
