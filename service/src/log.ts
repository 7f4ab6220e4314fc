// Structured logs, one JSON object a line on stdout. Everything that could carry a secret passes
// through redaction: known fields are dropped, and the finished line is scanned for such fields at
// any depth and for our own secrets' prefixes, so that a secret inside an error does not get out either.

import { redact, withoutValues } from "@holdfast/kit/redact";
import { standardOutput } from "@holdfast/kit/standard-output";
import { type DestinationStream, type Logger, pino } from "pino";
import type { LogStore } from "./log-store/log-store.ts";

export type Log = Logger;

const secretFields = ["password", "token", "secret", "authorization", "cookie", "set-cookie", "kek", "key"];

/** The logger's own redaction reaches three levels deep; an error's properties may lie deeper. */
const secretText = new RegExp(`"(${secretFields.join("|")})":"(?:[^"\\\\]|\\\\.)*"`, "gi");

export type LogOptions = {
  process: string;
  level: string;
  destination?: DestinationStream;
  /** Keeps the lines, so that they can be found by the ids in them. */
  store?: Pick<LogStore, "append"> | undefined;
  /** What this process knows and nobody may read, such as the key that it encrypts with: these have no form of their own. */
  secrets?: readonly string[];
};

export function createLog(options: LogOptions): Log {
  // Our own, because pino's destination retries a failed write endlessly when it flushes at exit.
  const destination = options.destination ?? standardOutput();
  const { store } = options;
  const withoutOwn = withoutValues(options.secrets ?? []);
  const write = (line: string) => {
    const redacted = withoutOwn(redact(line.replace(secretText, '"$1":"[redacted]"')));
    destination.write(redacted);
    store?.append(redacted);
  };
  return pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: shortened },
      redact: {
        paths: secretFields.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.*["${field}"]`]),
        censor: "[redacted]",
      },
    },
    { write },
  );
}

/** An error's message and stack may repeat what a client sent, which must not decide how large a log grows. */
const LONGEST_TEXT = 4_000;

function shortened(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const entries = Object.entries(pino.stdSerializers.err(error));
  return Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === "string" ? cut(value) : value]),
  );
}

/** Redacts first: half a secret is no longer recognised. */
function cut(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${redact(text).slice(0, LONGEST_TEXT)}… (cut)`;
}
