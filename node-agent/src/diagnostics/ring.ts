// The agent's recent history: problems, and when they were resolved. Each record goes to the file, to
// memory and to the log. A retry loop must not flush the history out: repetitions are counted in their
// record.

import { correlationIdForm } from "@holdfast/contracts/headers";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { type DiagnosticReason, diagnosticReasons, isProblem } from "@holdfast/contracts/reasons/node";
import { isErrno } from "@holdfast/kit/files";
import { redact } from "@holdfast/kit/redact";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "../log.ts";
import { type KeptRecord, openRingFile, RING_RECORDS, type RingFile, readRing, ringPath } from "./ring-file.ts";

export type Diagnostics = {
  /**
   * Never throws: if the disk fails, the record is still in the log and in memory. Returns the record's correlation id: that of the
   * request or task it is about, else a new one. A record of a recovery has none unless it is passed.
   */
  record(reason: DiagnosticReason, detail: string, correlationId?: string): string | null;
  /** For the upload, oldest first; at most `most` (64 is the server's limit). */
  newerThan(seq: number, most?: number): DiagnosticRecord[];
  /** Newest first. */
  recent(count: number): DiagnosticRecord[];
  /** Retries failed writes. Returns why the file cannot be written; undefined if it can. */
  problem(): string | undefined;
  close(): void;
};

export type DiagnosticsOptions = { log: Log; instanceId: string; now?: () => number };

const LONGEST_DETAIL = 400;
/** A repetition within this time is counted in the same record. */
const REPEATED_WITHIN_MS = 60_000;
/** After this time a new record begins, so that the history shows that the problem continues. */
const LONGEST_COUNT_MS = 3600_000;
/** Records of one reason per minute; further ones are counted in the last. */
const MOST_DIFFERENT = 8;

/** Never throws: without a file the records are in memory and in the log only. */
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
  // After the loss of the file, numbers must not start below what the server already has: it would ignore them.
  let next = (kept.at(-1)?.seq ?? Math.floor(now() / 1000)) + 1;
  /** Records of this process, by reason, that repetitions are still counted in. */
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

/** The published form: the count is part of the detail. */
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
