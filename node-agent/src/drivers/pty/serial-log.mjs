// @ts-check
// Reads a VM's serial log where the launcher of the VM writes it: in `serial.log`, and when that is full in a new file of this
// name, while the full one becomes `serial.log.1` and replaces an older one. A reader keeps the file open that it is in, so
// that it misses nothing when files are renamed or removed. Its place can be kept as a text, for another reader later.

import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** @typedef {{ fd: number, name: string, size: number }} OpenLog */

/** Lines are searched for a beginning within so many bytes. */
const LONGEST_LINE = 4096;

/**
 * @param {string} path of `serial.log`
 * @param {{ from?: string | undefined, most: number }} options `from`: the place of an earlier reader; otherwise the last `most`
 *   bytes are read first, from the beginning of a line.
 */
export function openSerialLog(path, { from, most }) {
  const { file: found, position: start, skipped: missed } = beginning(path, from, most);
  let file = found;
  let position = start;
  let skipped = missed;

  const take = (/** @type {Buffer} */ buffer) => {
    if (!file) return 0;
    const count = readSync(file.fd, buffer, 0, buffer.length, position);
    position += count;
    return count;
  };

  return {
    /** @param {Buffer} buffer @returns {number} how much was read into it; 0: there is nothing new */
    read(buffer) {
      const count = take(buffer);
      if (count > 0) return count;
      const newest = open(path);
      if (!newest || newest.name === file?.name) {
        if (newest) closeSync(newest.fd);
        return 0;
      }
      // The older one was complete before this one was begun.
      const rest = take(buffer);
      if (rest > 0) {
        closeSync(newest.fd);
        return rest;
      }
      if (file) {
        skipped ||= nameOf(`${path}.1`) !== file.name;
        closeSync(file.fd);
      }
      file = newest;
      position = 0;
      return take(buffer);
    },
    /** Whether output was dropped before what was read last. */
    takeSkipped() {
      const was = skipped;
      skipped = false;
      return was;
    },
    /** The last bytes are to be read again. @param {number} count @returns {number} how many of them */
    back(count) {
      const many = Math.min(count, position);
      position -= many;
      return many;
    },
    place: () => (file ? `${file.name}.${position}` : (from ?? "0-0.0")),
    close() {
      if (file) closeSync(file.fd);
      file = undefined;
    },
  };
}

/** @param {string} path @param {string | undefined} from @param {number} most */
function beginning(path, from, most) {
  const [newest, older] = [open(path), open(`${path}.1`)];
  const [, name, offset = "0"] = /^(\d+-\d+)\.(\d{1,15})$/.exec(from ?? "") ?? [];
  const keep = (/** @type {OpenLog | undefined} */ file, /** @type {number} */ position, skipped = false) => {
    for (const one of [newest, older]) if (one && one !== file) closeSync(one.fd);
    return { file, position, skipped };
  };
  for (const one of [newest, older])
    if (one && one.name === name && Number(offset) <= one.size) return keep(one, Number(offset));
  const missing = name !== undefined;
  const ofOlder = most - (newest?.size ?? 0);
  if (older && ofOlder > 0) return keep(older, lineAt(older, older.size - ofOlder), missing);
  return keep(newest, newest ? lineAt(newest, newest.size - most) : 0, missing);
}

/** The beginning of the first line from there on. @param {OpenLog} file @param {number} position */
function lineAt(file, position) {
  if (position <= 0) return 0;
  const buffer = Buffer.alloc(LONGEST_LINE);
  const count = readSync(file.fd, buffer, 0, buffer.length, position);
  return position + buffer.subarray(0, count).indexOf("\n") + 1;
}

/** Undefined: there is none. The number of a file may be used again, but not with the same time. @param {string} path */
function open(path) {
  try {
    const fd = openSync(path, "r");
    const { ino, birthtimeNs, size } = fstatSync(fd, { bigint: true });
    return { fd, name: `${ino}-${birthtimeNs}`, size: Number(size) };
  } catch {
    return undefined;
  }
}

/** @param {string} path */
function nameOf(path) {
  const file = open(path);
  if (file) closeSync(file.fd);
  return file?.name;
}
