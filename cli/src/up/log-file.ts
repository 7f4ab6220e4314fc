// A log file that cannot fill the disk: at 10 MB it becomes `.1`, and three old ones are kept.
// Processes write to it themselves: through a pipe of ours, their logger would spin forever on the
// broken pipe once we are killed. So it is emptied in place, like logrotate's copytruncate; a line
// written at that very moment may be lost.

import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, renameSync, writeSync } from "node:fs";
import { isErrno } from "@holdfast/kit/files";

export type LogFile = {
  /** Opened for appending, to be passed to processes. */
  file: number;
  write(chunk: Buffer): void;
  /** Size as of now; called from time to time. */
  keepWithinLimits(): void;
  close(): void;
};

export function openLogFile(
  path: string,
  limits: { bytes: number; kept: number } = { bytes: 10 * 1024 * 1024, kept: 3 },
): LogFile {
  const file = openSync(path, "a", 0o600);
  return {
    file,
    write: (chunk) => unlessDiskFull(() => writeSync(file, chunk)),
    keepWithinLimits: () => {
      if (fstatSync(file).size <= limits.bytes) return;
      unlessDiskFull(() => keepCopy(path, limits.kept));
      ftruncateSync(file);
    },
    close: () => closeSync(file),
  };
}

function keepCopy(path: string, kept: number): void {
  for (let age = kept; age > 1; age -= 1) {
    try {
      renameSync(`${path}.${age - 1}`, `${path}.${age}`);
    } catch (error) {
      if (!isErrno(error, "ENOENT")) throw error;
    }
  }
  copyFileSync(path, `${path}.1`);
}

/** A full disk must not stop the process that is being logged. */
function unlessDiskFull(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!isErrno(error, "ENOSPC")) throw error;
  }
}
