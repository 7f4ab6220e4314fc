// Structured logs, one JSON object a line on stdout. Everything that could carry a secret passes
// through redaction: known fields are dropped, and the finished line is scanned for such fields at
// any depth and for our own secrets' prefixes, so that a secret inside an error does not get out either.

import { redact } from "@holdfast/kit/redact";
import { standardOutput } from "@holdfast/kit/standard-output";
import { type DestinationStream, type Logger, pino } from "pino";

export type Log = Logger;

const secretFields = ["password", "token", "secret", "authorization", "cookie", "set-cookie", "kek", "key"];

/** The logger's own redaction reaches three levels deep; an error's properties may lie deeper. */
const secretText = new RegExp(`"(${secretFields.join("|")})":"(?:[^"\\\\]|\\\\.)*"`, "gi");

export function createLog(options: { process: string; level: string; destination?: DestinationStream }): Log {
  // Ours, because pino's own destination repeats a broken write for ever when it flushes at exit.
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
