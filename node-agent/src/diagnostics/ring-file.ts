// diagnostics.log: the newest 512 records in a file of fixed size, each a line of JSON filled up with
// spaces, so that a person can read it with `less`. A record is written over the one 512 before it:
// once the file is created, a full disk does not matter. A torn line is skipped.

import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  statfsSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";

/** As stored in the file. Repetitions are counted, not written again. */
export type KeptRecord = DiagnosticRecord & { count: number; last_at: string };

export const RING_RECORDS = 512;
const LINE_BYTES = 1024;
const FILE_BYTES = RING_RECORDS * LINE_BYTES;

export type RingFile = { write(record: KeptRecord): void; close(): void };

export function ringPath(directory: string): string {
  return join(directory, "diagnostics.log");
}

/** In order. Throws when the file cannot be read. */
export function readRing(path: string): KeptRecord[] {
  const content = readFileSync(path);
  const found: KeptRecord[] = [];
  // By position, not by line breaks: damage stays within its own line.
  for (let slot = 0; slot < RING_RECORDS; slot += 1) {
    const record = parse(content.toString("utf8", slot * LINE_BYTES, (slot + 1) * LINE_BYTES));
    if (record && record.seq % RING_RECORDS === slot) found.push(record);
  }
  return found.sort((a, b) => a.seq - b.seq);
}

/** Throws when it cannot be written. */
export function openRingFile(path: string): RingFile {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  const missing = FILE_BYTES - fstatSync(file).size;
  try {
    if (missing > 0) {
      expectRoom(path, missing);
      makeLines(file);
    }
  } catch (error) {
    closeSync(file);
    // A partial file would only use up the disk.
    unlinkSync(path);
    throw error;
  }
  return {
    write: (record) => writeLine(file, lineOf(record), (record.seq % RING_RECORDS) * LINE_BYTES),
    close: () => closeSync(file),
  };
}

/** This is retried on a full disk: using up the last free space each time would harm other processes. */
function expectRoom(path: string, bytes: number): void {
  const { bsize, bfree, bavail } = statfsSync(path);
  const free = bsize * (process.geteuid?.() === 0 ? bfree : bavail);
  if (free < bytes) throw new Error(`ENOSPC: ${path} needs ${bytes} bytes and ${free} are free`);
}

function makeLines(file: number): void {
  const empty = " ".repeat(LINE_BYTES - 1);
  for (let at = fstatSync(file).size; at < FILE_BYTES; at += LINE_BYTES) {
    // A truncated file continues with whole lines.
    writeLine(file, empty, at - (at % LINE_BYTES));
  }
  fsyncSync(file);
}

function writeLine(file: number, text: string, position: number): void {
  const line = Buffer.alloc(LINE_BYTES, " ");
  line.write(text);
  line.write("\n", LINE_BYTES - 1);
  for (let done = 0; done < LINE_BYTES; ) done += writeSync(file, line, done, LINE_BYTES - done, position + done);
}

/** Truncates the detail until the line fits: some characters take several bytes. */
function lineOf(record: KeptRecord): string {
  for (let length = record.detail.length; ; length -= Math.ceil(length / 8)) {
    const line = JSON.stringify({ ...record, detail: record.detail.slice(0, length).toWellFormed() });
    if (Buffer.byteLength(line) < LINE_BYTES || length === 0) return line;
  }
}

function parse(line: string): KeptRecord | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const record = JSON.parse(line) as Partial<KeptRecord>;
    const whole =
      Number.isSafeInteger(record.seq) &&
      typeof record.at === "string" &&
      typeof record.reason === "string" &&
      typeof record.detail === "string" &&
      typeof record.last_at === "string";
    return whole ? (record as KeptRecord) : undefined;
  } catch {
    return undefined;
  }
}
