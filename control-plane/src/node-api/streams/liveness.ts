// Whether the agent at the other end of a stream is still there. A dead connection with unsent data notices nothing by itself,
// so a sign of life is expected after something was sent.

export type Liveness = {
  /** Something was sent. */
  sent(): void;
  /** Something has come from the agent. */
  heard(): void;
  /** Whether something came a moment ago. If not, the agent is asked for a sign of life. */
  isHeard(): boolean;
  /** Called regularly. False: the agent does not respond. */
  check(): boolean;
};

const PING_AFTER_MS = 10_000;
const UNRESPONSIVE_AFTER_MS = 30_000;
const HEARD_WITHIN_MS = 3_000;

export function createLiveness(options: {
  ping(): void;
  /** The sign of life that `isHeard` has asked for. */
  onAnswered(): void;
  /** Monotonic. */
  now?: () => number;
}): Liveness {
  const now = options.now ?? (() => performance.now());
  let heardAt = now();
  /** Since when nothing has come after something was sent; undefined: something has. */
  let unheardSince: number | undefined;
  let asked = false;
  return {
    sent() {
      unheardSince ??= now();
    },
    heard() {
      heardAt = now();
      unheardSince = undefined;
      if (!asked) return;
      asked = false;
      options.onAnswered();
    },
    isHeard() {
      if (now() - heardAt < HEARD_WITHIN_MS) return true;
      if (!asked) options.ping();
      asked = true;
      unheardSince ??= now();
      return false;
    },
    check() {
      if (unheardSince === undefined) return true;
      const silentMs = now() - unheardSince;
      if (silentMs > UNRESPONSIVE_AFTER_MS) return false;
      if (silentMs > PING_AFTER_MS) options.ping();
      return true;
    },
  };
}
