// One file of log lines, with the places of the ids in it. The index is two columns of numbers, the hash of an id and where its
// line begins: eight bytes for each id in memory, and searched from end to end, which takes 0.1 ms for a full segment.
// A segment that is no longer written has its index beside it, in a file that can be made again from the lines at any time.

import { closeSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";

export type Index = { hashes: Uint32Array; offsets: Uint32Array; count: number };

/** Every field that names something: `correlation_id`, `node_id`, `session_id` and so on. */
const ids = /"([a-z_]{2,24})_id":"([\w.:-]{8,64})"/g;
/** Of a whole organization or process: such a list would be most of the file. */
const notIndexed: ReadonlySet<string> = new Set(["org", "instance"]);

export function emptyIndex(): Index {
  return { hashes: new Uint32Array(256), offsets: new Uint32Array(256), count: 0 };
}

export function addLine(index: Index, line: string, offset: number): void {
  for (const [, name = "", id = ""] of line.matchAll(ids)) {
    if (!notIndexed.has(name)) add(index, hashOf(id), offset);
  }
}

function add(index: Index, hash: number, offset: number): void {
  if (index.count === index.hashes.length) {
    index.hashes = grown(index.hashes);
    index.offsets = grown(index.offsets);
  }
  index.hashes[index.count] = hash;
  index.offsets[index.count] = offset;
  index.count += 1;
}

function grown(numbers: Uint32Array): Uint32Array {
  const larger = new Uint32Array(numbers.length * 2);
  larger.set(numbers);
  return larger;
}

/** Where lines begin that may name the id: another id can have the same hash. In the order of the file, each once. */
export function offsetsOf({ hashes, offsets, count }: Index, id: string): number[] {
  const wanted = hashOf(id);
  const found = new Set<number>();
  for (let at = 0; at < count; at += 1) if (hashes[at] === wanted) found.add(offsets[at] ?? 0);
  return [...found];
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Not synced: an index that is missing or too short is made again. */
export function writeIndex(path: string, { hashes, offsets, count }: Index, bytes: number): void {
  const numbers = new Uint32Array(2 + 2 * count);
  numbers.set([bytes, count]);
  numbers.set(hashes.subarray(0, count), 2);
  numbers.set(offsets.subarray(0, count), 2 + count);
  writeFileSync(path, new Uint8Array(numbers.buffer), { mode: 0o600 });
}

/** Undefined: there is none for a file of this size. */
export function readIndex(path: string, bytes: number): Index | undefined {
  let file: Buffer;
  try {
    file = readFileSync(path);
  } catch {
    return undefined;
  }
  if (file.length < 8 || file.length % 8 !== 0) return undefined;
  const numbers = new Uint32Array(new Uint8Array(file).buffer);
  const count = numbers[1] ?? 0;
  if (numbers[0] !== bytes || numbers.length !== 2 + 2 * count) return undefined;
  return { hashes: numbers.subarray(2, 2 + count), offsets: numbers.subarray(2 + count), count };
}

/** From the lines themselves. A last line without its end was cut off by a crash, and does not count. */
export function indexLines(path: string): Index {
  const index = emptyIndex();
  const content = readFileSync(path);
  for (let start = 0; ; ) {
    const end = content.indexOf(0x0a, start);
    if (end === -1) return index;
    addLine(index, content.toString("utf8", start, end), start);
    start = end + 1;
  }
}

const PIECE = 8 * 1024;

/** The lines that begin at these places; one that was cut off is left out. */
export function* readLines(path: string, offsets: readonly number[], mostBytes: number): Generator<string> {
  const file = openSync(path, "r");
  try {
    for (const offset of offsets) {
      for (let size = PIECE; ; size *= 4) {
        const piece = Buffer.alloc(size);
        const read = readSync(file, piece, 0, size, offset);
        const end = piece.subarray(0, read).indexOf(0x0a);
        if (end !== -1) yield piece.toString("utf8", 0, end);
        if (end !== -1 || read < size || size > mostBytes) break;
      }
    }
  } finally {
    closeSync(file);
  }
}
