// The log lines that one process keeps on disk, found by any id in them. Bounded by size and age: the oldest segment of eight
// is removed as a whole. Lines are written some milliseconds later and together, without a sync: a crash of the process loses
// what it wrote in that time, one of the machine a little more, and neither damages what is kept. Whoever appends has redacted.

import { closeSync, ftruncateSync, mkdirSync, openSync, readdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isErrno, removeIfPresent } from "@holdfast/kit/files";
import {
  addLine,
  emptyIndex,
  type Index,
  indexLines,
  offsetsOf,
  readIndex,
  readLines,
  writeIndex,
} from "./segment.ts";

type LogQuery = {
  /** Lines that name any of these. */
  ids: readonly string[];
  /** Milliseconds since 1970. */
  since?: number | undefined;
  until?: number | undefined;
  /** The newest are returned. */
  limit: number;
};

type FoundLines = {
  /** One JSON object each, oldest first. */
  lines: string[];
  truncated: boolean;
  /** Lines since the start of the process that could not be written, as to a full disk. */
  dropped: number;
};

export type LogStore = {
  /** A finished, redacted line with its line break. Never fails. */
  append(line: string): void;
  find(query: LogQuery): FoundLines;
  /** Writes what waits. */
  flush(): void;
  close(): void;
};

export type LogStoreOptions = {
  /** Belongs to this process alone. Created if it does not exist. */
  directory: string;
  mostBytes: number;
  mostAgeMs: number;
  now?: () => number;
};

const SEGMENTS = 8;
const WRITE_AFTER_MS = 50;
/** A longer line is not kept: something is wrong with it. */
const MOST_LINE_BYTES = 256 * 1024;

type Written = { path: string; number: number; bytes: number; index: Index; began: number; file: number };

export function openLogStore(options: LogStoreOptions): LogStore {
  const { directory, mostBytes, mostAgeMs, now = Date.now } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const segmentBytes = Math.max(1, Math.floor(mostBytes / SEGMENTS));
  let waiting: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;
  let current = begin((numbersIn(directory).at(-1) ?? 0) + 1);

  function begin(number: number): Written {
    const path = pathOf(number);
    removeOld(number);
    return { path, number, bytes: 0, index: emptyIndex(), began: now(), file: openSync(path, "a", 0o600) };
  }

  function pathOf(number: number): string {
    return join(directory, `${String(number).padStart(8, "0")}.jsonl`);
  }

  /** So that, with the segment of this number, no more are left than may be. */
  function removeOld(next: number): void {
    for (const number of numbersIn(directory)) {
      const tooOld = number !== next && lastWritten(pathOf(number)) < now() - mostAgeMs;
      if (number <= next - SEGMENTS || tooOld) {
        removeIfPresent(pathOf(number));
        removeIfPresent(indexPath(pathOf(number)));
      }
    }
  }

  const rotate = () => {
    closeSync(current.file);
    if (current.bytes > 0) writeIndex(indexPath(current.path), current.index, current.bytes);
    current = begin(current.number + 1);
  };

  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = waiting;
    waiting = [];
    if (lines.length === 0) return;
    try {
      if (current.bytes >= segmentBytes || current.began < now() - mostAgeMs / SEGMENTS) rotate();
      writeLines(lines);
    } catch {
      // A log line must never stop the process. What a full disk took of them is removed again.
      dropped += lines.length;
      try {
        ftruncateSync(current.file, current.bytes);
      } catch {}
    }
  };

  const writeLines = (lines: readonly string[]) => {
    const content = Buffer.from(lines.join(""));
    for (let written = 0; written < content.length; ) {
      written += writeSync(current.file, content, written, content.length - written);
    }
    for (const line of lines) {
      addLine(current.index, line, current.bytes);
      current.bytes += Buffer.byteLength(line);
    }
  };

  const indexOf = (number: number): { path: string; index: Index } => {
    if (number === current.number) return current;
    const path = pathOf(number);
    const { size } = statSync(path);
    const kept = readIndex(indexPath(path), size);
    if (kept) return { path, index: kept };
    const index = indexLines(path);
    writeIndex(indexPath(path), index, size);
    return { path, index };
  };

  process.once("exit", flush);
  return {
    append(line) {
      if (line.length > MOST_LINE_BYTES) {
        dropped += 1;
        return;
      }
      if (waiting.push(line) > 1) return;
      timer = setTimeout(flush, WRITE_AFTER_MS);
      timer.unref();
    },
    find({ ids, since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY, limit }) {
      flush();
      const oldest = Math.max(since, now() - mostAgeMs);
      const quoted = ids.map((id) => JSON.stringify(id));
      const lines: string[] = [];
      for (const number of numbersIn(directory).toReversed()) {
        const found: string[] = [];
        try {
          const { path, index } = indexOf(number);
          const offsets = [...new Set(ids.flatMap((id) => offsetsOf(index, id)))].toSorted((a, b) => a - b);
          for (const line of readLines(path, offsets, MOST_LINE_BYTES * 4)) {
            const at = timeOf(line);
            if (at >= oldest && at <= until && quoted.some((id) => line.includes(id))) found.push(line);
          }
        } catch (error) {
          if (!isErrno(error, "ENOENT")) throw error;
        }
        lines.unshift(...found);
        if (lines.length > limit) break;
      }
      return { lines: lines.slice(-limit), truncated: lines.length > limit, dropped };
    },
    flush,
    close() {
      flush();
      process.off("exit", flush);
      closeSync(current.file);
    },
  };
}

/** NaN, and so never within limits, for a line that is not one of ours. */
function timeOf(line: string): number {
  return Date.parse(/"time":"([^"]{20,30})"/.exec(line)?.[1] ?? "");
}

function indexPath(path: string): string {
  return path.replace(/jsonl$/, "idx");
}

function numbersIn(directory: string): number[] {
  return readdirSync(directory)
    .flatMap((name) => (/^\d{8}\.jsonl$/.test(name) ? Number(name.slice(0, 8)) : []))
    .toSorted((a, b) => a - b);
}

function lastWritten(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}
