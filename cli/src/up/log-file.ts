// A log file that cannot fill the disk: at 10 MB it becomes `.1`, and three old ones are kept.

import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { isErrno } from "@holdfast/kit/files";

export type LogFile = { path: string; write(chunk: Buffer): void; close(): void };

export function openLogFile(
  path: string,
  limits: { bytes: number; kept: number } = { bytes: 10 * 1024 * 1024, kept: 3 },
): LogFile {
  let file = openSync(path, "a", 0o600);
  let size = fstatSync(file).size;
  return {
    path,
    write: (chunk) => {
      if (size > 0 && size + chunk.length > limits.bytes) {
        closeSync(file);
        shift(path, limits.kept);
        file = openSync(path, "a", 0o600);
        size = 0;
      }
      size += chunk.length;
      // A full disk must not stop the process that is being logged.
      try {
        writeSync(file, chunk);
      } catch (error) {
        if (!isErrno(error, "ENOSPC")) throw error;
      }
    },
    close: () => closeSync(file),
  };
}

function shift(path: string, kept: number): void {
  for (let age = kept; age > 0; age -= 1) {
    try {
      renameSync(age === 1 ? path : `${path}.${age - 1}`, `${path}.${age}`);
    } catch (error) {
      if (!isErrno(error, "ENOENT")) throw error;
    }
  }
}
