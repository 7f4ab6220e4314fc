// Structured logs, one JSON object a line on stdout. Everything that could carry a secret passes
// through redaction: known fields are dropped, and the finished line is scanned for such fields at
// any depth and for our own secrets' prefixes, so that a secret inside an error does not get out either.

import { writeSync } from "node:fs";
import { isErrno } from "@holdfast/kit/files";
import { redact } from "@holdfast/kit/redact";
import { type DestinationStream, type Logger, pino } from "pino";

export type Log = Logger;

const secretFields = ["password", "token", "secret", "authorization", "cookie", "set-cookie", "kek", "key"];

/** The logger's own redaction reaches three levels deep; an error's properties may lie deeper. */
const secretText = new RegExp(`"(${secretFields.join("|")})":"(?:[^"\\\\]|\\\\.)*"`, "gi");

export function createLog(options: { process: string; level: string; destination?: DestinationStream }): Log {
  const destination = options.destination ?? standardOutput();
  return pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]),
        censor: "[redacted]",
      },
    },
    { write: (line: string) => destination.write(redact(line.replace(secretText, '"$1":"[redacted]"'))) },
  );
}

/**
 * Writes the lines of one turn of the event loop together, and the rest at exit. A reader who went
 * away (`| head`) is no reason to fail, and none to hang: pino's own destination repeats a broken
 * write for ever when it flushes at exit.
 */
function standardOutput(): DestinationStream {
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

const MOST_WAITING_BYTES = 16 * 1024 * 1024;
