// Ends pipes whose writers are gone or cannot be found, and loses nothing that was written before. On a busy host the time for
// it may be over before the event loop has read the pipes even once, so turns of the loop are counted, not milliseconds.

import type { Readable } from "node:stream";

/** In each turn 64 KiB are read of a pipe, which holds 1 MiB at most; a writer that never stops is cut off after these. */
const MOST_TURNS = 32;

/** Destroys them after a turn in which nothing came. */
export function endPipes(streams: readonly Readable[]): void {
  let came = 0;
  for (const stream of streams) {
    stream.on("data", () => {
      came += 1;
    });
  }
  const turn = (left: number, before: number) => {
    if (left > 0 && came !== before) return void setImmediate(turn, left - 1, came);
    for (const stream of streams) stream.destroy();
  };
  // The rest of this turn, and a whole one: an immediate runs after pipes were read.
  setImmediate(() => setImmediate(turn, MOST_TURNS, 0));
}
