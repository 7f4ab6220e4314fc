// When the other end of a terminal's connection counts as unresponsive. Page, command line, gateway and agent
// decide by this one rule: while a terminal is open they ask every few seconds, and anything that arrives is
// an answer. Coming back loses nothing, so a wrong verdict costs a moment and a late one a person's patience.

/** How often the peer is pinged. */
export const PING_MS = 3_000;
/** So many questions in a row may stay without an answer. */
const MOST_UNANSWERED = 2;
/** The longest that a dead peer goes unnoticed: it may have answered right before it died. */
export const DETECTION_MS = PING_MS * (1 + MOST_UNANSWERED);

export type Liveness = {
  /**
   * Called every `PING_MS`, with a clock that never goes back and a count that grows with everything that
   * arrives: ask the peer now, or give it up.
   */
  tick(now: number, received: number): "ask" | "unresponsive";
  /** We do not read it on purpose: its answers cannot arrive. */
  excuse(now: number): void;
  /** Nothing has arrived since then, by the clock of `tick`. */
  silentSince(): number;
};

export function createLiveness(now: number): Liveness {
  let tickedAt = now;
  let askedAt = now;
  let unanswered = 0;
  let before = -1;
  const excuse = (at: number) => {
    tickedAt = at;
    unanswered = 0;
  };
  return {
    tick(at, received) {
      // A tick that was left out is a pause of ours: the answer may be waiting to be read.
      if (received !== before || at - tickedAt >= 2 * PING_MS) excuse(at);
      tickedAt = at;
      before = received;
      if (unanswered >= MOST_UNANSWERED) return "unresponsive";
      if (unanswered === 0) askedAt = at;
      unanswered += 1;
      return "ask";
    },
    excuse,
    silentSince: () => askedAt,
  };
}
