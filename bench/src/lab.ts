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
  /** For what runs in the bench's own process; the last asked for is done first, after all programs. */
  onClose(work: () => Promise<void>): void;
  /** Stops all that runs, then removes all directories. */
  close(): Promise<void>;
};

export function openLab(): Lab {
  const programs: RunningProgram[] = [];
  const directories: string[] = [];
  const closers: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const refuseWhenClosed = () => {
    if (closing) throw new Error("the bench was interrupted");
  };
  const end = async () => {
    // Last started, first stopped: a server's clients go before it.
    for (const program of programs.reverse()) await program.stop();
    for (const work of closers.reverse()) await work();
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
    onClose: (work) => {
      refuseWhenClosed();
      closers.push(work);
    },
    close: () => {
      closing ??= end();
      return closing;
    },
  };
}
