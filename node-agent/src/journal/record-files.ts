// An append-only sequence of records in two files used in turn. The file in use is appended to; when
// it is full, the records still needed are written to the other one, which then is the file in use.
//
//   file    header, then records, then whatever was there before
//   header  "HFJ1" · epoch · salt · CRC32          the file with the newer epoch is in use
//   record  length · CRC32 · payload (JSON)
//
// Each CRC continues from the one before it, the first from the header's. A record is therefore valid
// only after exactly the records that preceded it: neither bytes of an older epoch nor those
// after a torn record are ever read as records. Reading ends at the first record that does not fit.
//
// A file that was opened is never appended to: a power loss may have taken one record and kept the next,
// which would be valid again behind an equal record. The first append comes after a rewrite, with a new salt.

import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";
import type { FileIndex, Storage } from "./storage.ts";

export type RecordFiles = {
  /** False when it does not fit, and until the first rewrite: rewrite, then append again. Throws the disk's errors. */
  append(payload: string): boolean;
  /** Replaces everything by these; a crash meanwhile leaves everything as it was. */
  rewrite(payloads: Iterable<string>): void;
  /** Resolves when everything appended before is on disk. Concurrent callers share one sync. */
  sync(): Promise<void>;
  /** Human-readable damage that was found when the files were opened. */
  readonly damage: string | undefined;
};

const MAGIC = 0x48464a31;
const HEADER_BYTES = 16;
const CHUNK_BYTES = 128 * 1024;
const RECORD_OVERHEAD_BYTES = 8;

type Header = { epoch: number; crc: number } | "empty" | "damaged";
/** `active` is the file in use; undefined when neither is. */
type Found = { active: FileIndex | undefined; epoch: number; damage: string | undefined };
/** Where the next record goes. */
type Tail = { end: number; chain: number };

/** Hands every valid record to `found`, in order, and changes nothing. */
export function readRecordFiles(storage: Storage, found: (payload: string) => void): Found {
  const headers = [readHeader(storage, 0), readHeader(storage, 1)] as const;
  const [a, b] = [epochOf(headers[0]), epochOf(headers[1])];
  const newer: FileIndex = b > a ? 1 : 0;
  const header = headers[newer];
  const used = typeof header !== "string";
  if (used) readRecords(storage, newer, header.crc, found);
  return { active: used ? newer : undefined, epoch: Math.max(a, b), damage: damageOf(headers) };
}

/** Hands every valid record to `found`, in order, before it returns. */
export function openRecordFiles(storage: Storage, found: (payload: string) => void): RecordFiles {
  const opened = readRecordFiles(storage, found);
  let { active = 0, epoch } = opened;
  let tail: Tail | undefined;
  const writer = recordWriter(storage);
  let flying: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;

  const files: RecordFiles = {
    damage: opened.damage,
    append(payload) {
      const written = tail && writer.one(active, payload, tail);
      if (!written) return false;
      tail = written;
      return true;
    },
    rewrite(payloads) {
      const other: FileIndex = active === 0 ? 1 : 0;
      const header = headerBytes(epoch + 1, randomInt(2 ** 32));
      const written = writer.many(other, payloads, { end: HEADER_BYTES, chain: header.readUInt32BE(12) });
      storage.syncNow(other);
      // Only now is the other file the one in use.
      storage.write(other, header, 0);
      storage.syncNow(other);
      tail = written;
      active = other;
      epoch += 1;
    },
    sync() {
      // Starts after this turn of the event loop, so that all writes of the turn share the sync.
      waiting ??= (flying?.catch(() => {}) ?? endOfTurn()).then(() => {
        flying = waiting;
        waiting = undefined;
        return storage.sync(active).finally(() => {
          if (!waiting) flying = undefined;
        });
      });
      return waiting;
    },
  };
  if (opened.active === undefined) files.rewrite([]);
  return files;
}

function readRecords(storage: Storage, file: FileIndex, seed: number, found: (payload: string) => void): void {
  let end = HEADER_BYTES;
  let chain = seed;
  let chunk: Buffer = Buffer.alloc(0);
  let chunkAt = HEADER_BYTES;
  const bytes = (length: number): Buffer => {
    if (end + length > chunkAt + chunk.length) {
      chunk = storage.read(file, end, Math.max(length, CHUNK_BYTES));
      chunkAt = end;
    }
    return chunk.subarray(end - chunkAt, end - chunkAt + length);
  };
  for (;;) {
    const head = bytes(RECORD_OVERHEAD_BYTES);
    if (head.length < RECORD_OVERHEAD_BYTES) break;
    const [length, crc] = [head.readUInt32BE(0), head.readUInt32BE(4)];
    if (length === 0 || end + RECORD_OVERHEAD_BYTES + length > storage.capacity) break;
    const payload = bytes(RECORD_OVERHEAD_BYTES + length).subarray(RECORD_OVERHEAD_BYTES);
    if (payload.length < length || crcOf(payload, chain) !== crc) break;
    found(payload.toString("utf8"));
    chain = crc;
    end += RECORD_OVERHEAD_BYTES + length;
  }
}

function recordWriter(storage: Storage) {
  let buffer = Buffer.allocUnsafe(8 * 1024);
  const encode = (payload: string, at: number, chain: number): { next: number; chain: number } => {
    const length = Buffer.byteLength(payload);
    const next = at + RECORD_OVERHEAD_BYTES + length;
    if (next > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(next, 2 * buffer.length));
      buffer.copy(larger, 0, 0, at);
      buffer = larger;
    }
    buffer.write(payload, at + RECORD_OVERHEAD_BYTES);
    const crc = crcOf(buffer.subarray(at + RECORD_OVERHEAD_BYTES, next), chain);
    buffer.writeUInt32BE(length, at);
    buffer.writeUInt32BE(crc, at + 4);
    return { next, chain: crc };
  };
  const flush = (file: FileIndex, filled: number, position: number) => {
    storage.write(file, buffer.subarray(0, filled), position);
    // A large result's buffer is not kept.
    if (buffer.length > 2 * CHUNK_BYTES) buffer = Buffer.allocUnsafe(8 * 1024);
  };
  return {
    one(file: FileIndex, payload: string, { end, chain }: Tail): Tail | undefined {
      if (end + RECORD_OVERHEAD_BYTES + Buffer.byteLength(payload) > storage.capacity) return undefined;
      const encoded = encode(payload, 0, chain);
      flush(file, encoded.next, end);
      return { end: end + encoded.next, chain: encoded.chain };
    },
    many(file: FileIndex, payloads: Iterable<string>, start: Tail): Tail {
      let { end, chain } = start;
      let filled = 0;
      for (const payload of payloads) {
        const encoded = encode(payload, filled, chain);
        ({ next: filled, chain } = encoded);
        if (end + filled > storage.capacity) throw new Error("The records do not fit into the journal.");
        if (filled < CHUNK_BYTES) continue;
        flush(file, filled, end);
        end += filled;
        filled = 0;
      }
      if (filled > 0) flush(file, filled, end);
      return { end: end + filled, chain };
    },
  };
}

/** Includes the length, so that a damaged length is detected even where the payload would fit. */
function crcOf(payload: Buffer, chain: number): number {
  return crc32(payload, (chain ^ payload.length) >>> 0);
}

function headerBytes(epoch: number, salt: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(MAGIC, 0);
  header.writeUInt32BE(epoch, 4);
  header.writeUInt32BE(salt, 8);
  header.writeUInt32BE(crc32(header.subarray(0, 12)), 12);
  return header;
}

function readHeader(storage: Storage, file: FileIndex): Header {
  const header = storage.read(file, 0, HEADER_BYTES);
  if (header.every((byte) => byte === 0)) return "empty";
  if (header.length < HEADER_BYTES || header.readUInt32BE(0) !== MAGIC) return "damaged";
  const crc = header.readUInt32BE(12);
  return crc32(header.subarray(0, 12)) === crc ? { epoch: header.readUInt32BE(4), crc } : "damaged";
}

function epochOf(header: Header): number {
  return typeof header === "string" ? 0 : header.epoch;
}

function damageOf([a, b]: readonly [Header, Header]): string | undefined {
  if (a !== "damaged" && b !== "damaged") return undefined;
  const name = a === "damaged" ? "journal.a" : "journal.b";
  const other = a === "damaged" ? b : a;
  if (typeof other === "string") return "The journal is damaged beyond reading; it begins anew.";
  return `The journal's file ${name} is damaged; the other one was used, which may be older.`;
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
