// Many small messages on one connection as one system call, which costs more than the messages themselves.

import type { Writable } from "node:stream";

/** What is written from now until the end of this turn leaves together. `uncork` sends it earlier. */
export function gatherWrites(stream: Writable): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(release, stream);
}

function release(stream: Writable): void {
  stream.uncork();
}
