// Files that must never be seen half-written, even after kill -9 or a power cut.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Writes beside the target, syncs, renames over it, and syncs the directory. */
export function writeFileDurably(path: string, content: string, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeSynced(temporary, content, mode);
    renameSync(temporary, path);
  } catch (error) {
    removeIfPresent(temporary);
    throw error;
  }
  syncDirectory(dirname(path));
}

function writeSynced(path: string, content: string, mode: number): void {
  const file = openSync(path, "w", mode);
  try {
    // Writes all of it, where writeSync may stop part-way.
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export function readFileIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

export function removeIfPresent(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
