// Where a bench works: directories and processes that are gone when the lab closes, whether the
// bench finished, failed or was interrupted.

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, type Program, type RunningProgram } from "./program.ts";

export type Lab = {
  /** Directly below the system's temporary directory, and open on the way down: an unprivileged database user passes. */
  directory(): string;
  start(program: Program): RunningProgram;
  /** Stops all that runs, then removes all directories. */
  close(): Promise<void>;
};

export function openLab(): Lab {
  const programs: RunningProgram[] = [];
  const directories: string[] = [];
  let closing: Promise<void> | undefined;
  const refuseWhenClosed = () => {
    if (closing) throw new Error("the bench was interrupted");
  };
  const end = async () => {
    // Last started, first stopped: a server's clients go before it.
    for (const program of programs.reverse()) await program.stop();
    for (const path of directories) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  };
  return {
    directory: () => {
      refuseWhenClosed();
      const made = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
      directories.push(made);
      chmodSync(made, 0o711);
      return made;
    },
    start: (program) => {
      refuseWhenClosed();
      const running = launch(program);
      programs.push(running);
      return running;
    },
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}
