// The agent's recent history: why it was not well, and when it was again. Each record goes to the
// file, to memory and to the log. A retry loop must not flush the history out: what repeats itself is
// counted in its record.

import { correlationIdForm } from "@holdfast/contracts/headers";
import type { DiagnosticRecord } from "@holdfast/contracts/node-protocol";
import { type DiagnosticReason, diagnosticReasons, isProblem } from "@holdfast/contracts/reasons/node";
import { isErrno } from "@holdfast/kit/files";
import { redact } from "@holdfast/kit/redact";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "../log.ts";
import { type KeptRecord, openRingFile, RING_RECORDS, type RingFile, readRing, ringPath } from "./ring-file.ts";

export type Diagnostics = {
  /**
   * Never throws: a disk that fails leaves the log line and the memory. Returns the record's correlation id: that of the
   * request or task it is about, else a new one. A record that says that all is well has none unless it is given.
   */
  record(reason: DiagnosticReason, detail: string, correlationId?: string): string | null;
  /** For the upload, oldest first; at most `most` (64 is the server's limit). */
  newerThan(seq: number, most?: number): DiagnosticRecord[];
  /** Newest first. */
  recent(count: number): DiagnosticRecord[];
  /** Tries again what failed. What keeps the file from being written; undefined when all is well. */
  problem(): string | undefined;
  close(): void;
};

export type DiagnosticsOptions = { log: Log; instanceId: string; now?: () => number };

const LONGEST_DETAIL = 400;
/** The same again within this time of the last time is counted. */
const REPEATED_WITHIN_MS = 60_000;
/** Then a new record begins, so that the history shows that it went on. */
const LONGEST_COUNT_MS = 3600_000;
/** Of one reason within a minute; what else comes is counted in the last. */
const MOST_DIFFERENT = 8;

/** Never throws: while there is no file the records live in memory and in the log only. */
export function openDiagnostics(directory: string, options: DiagnosticsOptions): Diagnostics {
  const { log, instanceId } = options;
  const now = options.now ?? Date.now;
  const path = ringPath(directory);
  const { kept, problem: unread } = readIfPresent(path);
  let file: RingFile | undefined;
  let problem: string | undefined = unread;

  function open(records: readonly KeptRecord[]): void {
    try {
      file = openRingFile(path);
      for (const record of records) file.write(record);
      problem = undefined;
    } catch (error) {
      fail(error);
    }
  }

  function fail(error: unknown): void {
    file?.close();
    file = undefined;
    problem = (error as Error).message;
  }

  open([]);
  // A file that was lost must not begin below what the server has already: it would wait for newer ones.
  let next = (kept.at(-1)?.seq ?? Math.floor(now() / 1000)) + 1;
  /** Of this process, by reason: what may still be counted on. */
  const current = new Map<DiagnosticReason, KeptRecord[]>();

  function write(record: KeptRecord): void {
    try {
      if (file) file.write(record);
      else open(kept);
    } catch (error) {
      fail(error);
    }
  }

  function repeated(reason: DiagnosticReason, detail: string, at: number): KeptRecord | undefined {
    const fresh = (current.get(reason) ?? []).filter(
      (one) =>
        at - Date.parse(one.last_at) < REPEATED_WITHIN_MS &&
        at - Date.parse(one.at) < LONGEST_COUNT_MS &&
        one.seq > next - RING_RECORDS,
    );
    current.set(reason, fresh);
    return (
      fresh.find((one) => one.detail === detail) ?? (fresh.length >= MOST_DIFFERENT ? fresh.at(-1) : undefined)
    );
  }

  return {
    record(reason, text, correlationId) {
      const detail = cut(redact(text).replace(/\p{Cc}+/gu, " "));
      const named = redact(correlationId ?? "");
      const time = now();
      const at = new Date(time).toISOString();
      const wrong = isProblem(reason);
      const before = repeated(reason, detail, time);
      const known = correlationIdForm.test(named) ? named : before?.correlation_id;
      const correlation_id = known ?? (wrong ? uuidv7() : null);
      log[wrong ? "warn" : "info"](`${reason}: ${diagnosticReasons[reason].message}`, {
        ...{ reason, detail, correlation_id },
      });
      if (before) {
        before.count += 1;
        before.last_at = at;
        write(before);
        return before.correlation_id;
      }
      const instance_id = instanceId;
      const record = { seq: next, at, reason, detail, instance_id, correlation_id, count: 1, last_at: at };
      next += 1;
      kept.push(record);
      if (kept.length > RING_RECORDS) kept.shift();
      current.get(reason)?.push(record);
      write(record);
      return correlation_id;
    },
    newerThan: (seq, most = 64) =>
      kept
        .filter((record) => record.seq > seq)
        .slice(0, most)
        .map(toDiagnosticRecord),
    recent: (count) => kept.slice(-count).reverse().map(toDiagnosticRecord),
    problem() {
      if (!file) open(kept);
      return problem;
    },
    close: () => file?.close(),
  };
}

/** As it is reported to others: the count stands in the detail. */
export function toDiagnosticRecord({ count, last_at, ...record }: KeptRecord): DiagnosticRecord {
  if (count === 1) return record;
  const suffix = ` (${count} times, last at ${last_at})`;
  return { ...record, detail: (cut(record.detail, LONGEST_DETAIL - suffix.length) + suffix).trim() };
}

function readIfPresent(path: string): { kept: KeptRecord[]; problem: string | undefined } {
  try {
    return { kept: readRing(path), problem: undefined };
  } catch (error) {
    return { kept: [], problem: isErrno(error, "ENOENT") ? undefined : (error as Error).message };
  }
}

function cut(text: string, length = LONGEST_DETAIL): string {
  return text.slice(0, length).toWellFormed().trim();
}
