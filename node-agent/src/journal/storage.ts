// The journal's two files on disk. All their space is allocated when they are created, by writing zeros:
// afterwards a full disk cannot stop a result from being written.

import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { isErrno, syncDirectory } from "@holdfast/kit/files";
import { explainWriteError } from "../identity/state-directory.ts";

export type FileIndex = 0 | 1;

/** What the journal needs of a disk. Tests use one that loses, tears and refuses writes. */
export type Storage = {
  /** Bytes in each file. */
  readonly capacity: number;
  /** Returns fewer bytes than requested at the end of the file. */
  read(file: FileIndex, position: number, length: number): Buffer;
  /** Writes everything, or throws. */
  write(file: FileIndex, content: Buffer, position: number): void;
  syncNow(file: FileIndex): void;
  sync(file: FileIndex): Promise<void>;
  close(): void;
};

export const fileNames = ["journal.a", "journal.b"] as const;
const SMALLEST = 64 * 1024;
// By hand: importing node:util for it costs a megabyte.
const fdatasyncSoon = (file: number) =>
  new Promise<void>((resolve, reject) => fdatasync(file, (error) => (error ? reject(error) : resolve())));

/** Throws HostProblem. Files are extended to the requested size if there is space, and never truncated. */
export function openStorage(directory: string, sizeBytes: number, setting?: string): Storage {
  const files: number[] = [];
  const close = () => {
    for (const file of files) closeSync(file);
  };
  try {
    const wanted = Math.max(sizeBytes, SMALLEST);
    for (const name of fileNames) {
      const file = openSync(join(directory, name), constants.O_RDWR | constants.O_CREAT, 0o600);
      files.push(file);
      preallocate(file, wanted);
    }
    syncDirectory(directory);
    return storage(files, Math.min(...files.map((file) => fstatSync(file).size)), close);
  } catch (error) {
    close();
    throw explainWriteError(error, directory, setting);
  }
}

/** Read-only, creates nothing. Undefined when there is no journal. */
export function openStorageToRead(directory: string): Storage | undefined {
  const files: number[] = [];
  const close = () => {
    for (const file of files) closeSync(file);
  };
  try {
    for (const name of fileNames) files.push(openSync(join(directory, name), "r"));
    return storage(files, Math.min(...files.map((file) => fstatSync(file).size)), close);
  } catch (error) {
    close();
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

function storage(files: readonly number[], capacity: number, close: () => void): Storage {
  const fd = (file: FileIndex) => files[file] ?? -1;
  return {
    capacity,
    read(file, position, length) {
      const content = Buffer.allocUnsafe(length);
      return content.subarray(0, readSync(fd(file), content, 0, length, position));
    },
    write: (file, content, position) => writeAll(fd(file), content, position),
    syncNow: (file) => fdatasyncSync(fd(file)),
    sync: (file) => fdatasyncSoon(fd(file)),
    close,
  };
}

function preallocate(file: number, wanted: number): void {
  const { size } = fstatSync(file);
  if (size >= wanted) return;
  try {
    const zeros = Buffer.alloc(256 * 1024);
    for (let at = size; at < wanted; at += zeros.length) {
      writeAll(file, zeros.subarray(0, Math.min(zeros.length, wanted - at)), at);
    }
    fsyncSync(file);
  } catch (error) {
    // Releases the space of the failed attempt.
    ftruncateSync(file, size);
    // A journal that could not grow is still usable.
    if (size < SMALLEST) throw error;
  }
}

function writeAll(file: number, content: Buffer, position: number): void {
  let done = 0;
  while (done < content.length) done += writeSync(file, content, done, content.length - done, position + done);
}
