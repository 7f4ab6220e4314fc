// Standard output for logs: it never fails or blocks the process.

import { writeSync } from "node:fs";
import { isErrno } from "./files.ts";

const MOST_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Writes the lines of one turn of the event loop together, and the rest at exit. A reader who went
 * away (`| head`) is forgotten; one that is slow gets what waits in a later turn.
 */
export function standardOutput(): { write(line: string): void } {
  let waiting = Buffer.alloc(0);
  let lines: string[] = [];
  const flush = () => {
    waiting = Buffer.concat([waiting, Buffer.from(lines.join(""))]);
    lines = [];
    try {
      while (waiting.length > 0) waiting = waiting.subarray(writeSync(1, waiting));
    } catch (error) {
      // A full pipe takes it in the next turn; anything else will not get better.
      if (isErrno(error, "EAGAIN") && waiting.length < MOST_WAITING_BYTES) setImmediate(flush);
      else waiting = Buffer.alloc(0);
    }
  };
  process.once("exit", flush);
  return {
    write(line) {
      if (lines.push(line) === 1) setImmediate(flush);
    },
  };
}
