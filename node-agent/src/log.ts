// The agent's log: one JSON object a line on stdout, as the server's processes write it. Every line
// is redacted. Where systemd reads it, each line begins with its syslog level.

import { fstatSync } from "node:fs";
import { redact } from "@holdfast/kit/redact";
import { standardOutput } from "@holdfast/kit/standard-output";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Record<string, unknown>;
export type Log = Record<LogLevel, (message: string, fields?: LogFields) => void>;

export type LogOptions = {
  /** The lowest level that is written. */
  level?: LogLevel;
  /** On every line. */
  fields?: LogFields;
  /** Takes whole lines; standard output by default. */
  write?: (line: string) => void;
  /** Whether stdout is journald's: lines then begin with their syslog level. Detected by default. */
  journald?: boolean;
};

const levels: Record<LogLevel, { rank: number; syslog: number }> = {
  debug: { rank: 0, syslog: 7 },
  info: { rank: 1, syslog: 6 },
  warn: { rank: 2, syslog: 4 },
  error: { rank: 3, syslog: 3 },
};
const secretFields = /^(password|token|secret|authorization|cookie|set-cookie|kek|key|key_?pem|private_?key)$/i;

export function createLog(options: LogOptions = {}): Log {
  const least = levels[options.level ?? "info"].rank;
  const write = options.write ?? standardOutput().write;
  const prefixed = options.journald ?? isJournald(process.env["JOURNAL_STREAM"]);
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    const { rank, syslog } = levels[level];
    if (rank < least) return;
    const line = { level, time: new Date().toISOString(), process: "agent", pid: process.pid, ...options.fields };
    const text = toJson({ ...line, ...fields, level, msg: message });
    write(`${prefixed ? `<${syslog}>` : ""}${redact(text)}\n`);
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function toJson(line: { level: LogLevel; msg: string }): string {
  try {
    return JSON.stringify(line, showable);
  } catch {
    // A cyclic object; the message matters more than its fields.
    return JSON.stringify({ level: line.level, time: new Date().toISOString(), process: "agent", msg: line.msg });
  }
}

function showable(name: string, value: unknown): unknown {
  if (secretFields.test(name) && value !== undefined && value !== null) return "[redacted]";
  if (typeof value === "bigint") return String(value);
  if (!(value instanceof Error)) return value;
  const { name: type, message, stack, cause } = value;
  return { ...value, type, message, stack, cause };
}

/** `device:inode` of journald's socket. It is inherited, also by processes whose output goes elsewhere. */
function isJournald(stream: string | undefined): boolean {
  if (!stream) return false;
  try {
    const { dev, ino } = fstatSync(1);
    return stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
