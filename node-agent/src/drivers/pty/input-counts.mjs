// @ts-check
// How much each writer has typed into this shell: taken (in the queue for the PTY), and written to the PTY. A client
// whose connection broke sends again from what was taken; what was written is acknowledged to it.

/** A writer is one client from its start to its end; a shell rarely sees more than a few. */
const MOST_WRITERS = 64;
/** Longer than an echo takes, so that the acknowledgement of a key does not travel ahead of it. */
const ACKNOWLEDGE_MS = 25;

/** @typedef {{ taken: number, written: number, queuedAt: number }} Counts `queuedAt`: where in the queue its last byte ends. */

/**
 * @param {{ unwritten: () => number, every: number, acknowledge: (bytes: number) => void }} options
 *   `unwritten`: bytes of all writers that wait for the PTY. An acknowledgement is due after `every` bytes, or a moment.
 */
export function createInputCounts({ unwritten, every, acknowledge }) {
  /** The newest attached last. @type {Map<string, Counts>} */
  const writers = new Map();
  /** @type {Counts | undefined} */
  let present;
  /** Of all writers, ever. */
  let queued = 0;
  let acknowledged = 0;
  /** @type {NodeJS.Timeout | undefined} */
  let timer;

  /** Where bytes of others wait among the writer's own it is too low, never too high. @param {Counts} of */
  const writtenOf = (of) => {
    const waiting = Math.max(0, of.queuedAt - (queued - unwritten()));
    of.written = Math.max(of.written, of.taken - waiting);
    return of.written;
  };
  const acknowledgeNow = () => {
    clearTimeout(timer);
    timer = undefined;
    if (!present || writtenOf(present) <= acknowledged) return;
    acknowledged = present.written;
    acknowledge(acknowledged);
  };

  return {
    /** What is taken from now on is this writer's. Returns the byte it goes on from. @param {string} writer */
    attach(writer) {
      present = writers.get(writer) ?? { taken: 0, written: 0, queuedAt: 0 };
      acknowledged = 0;
      // Behind the others: the one that attached the longest ago is forgotten first.
      writers.delete(writer);
      writers.set(writer, present);
      const [oldest] = writers.keys();
      if (writers.size > MOST_WRITERS && oldest !== undefined) writers.delete(oldest);
      return present.taken;
    },
    /** A client of an older version, which expects no acknowledgements. */
    attachUncounted() {
      present = undefined;
    },
    /** @param {number} bytes */
    taken(bytes) {
      queued += bytes;
      if (!present) return;
      present.taken += bytes;
      present.queuedAt = queued;
    },
    /** Something was written to the PTY. */
    progressed() {
      if (!present) return;
      if (writtenOf(present) - acknowledged >= every) acknowledgeNow();
      else timer ??= setTimeout(acknowledgeNow, ACKNOWLEDGE_MS);
    },
    acknowledgeNow,
  };
}
