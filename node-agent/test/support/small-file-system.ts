// A file system that is quickly full, and can be made read-only. Needs root.

import { execFileSync } from "node:child_process";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export function smallFileSystem(sizeBytes: number): { directory: string; remount(mode: "ro" | "rw"): void } {
  const directory = scratchDirectory();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeBytes},mode=700`, "tmpfs", directory]);
  atEnd(() => execFileSync("umount", [directory]));
  return {
    directory,
    remount: (mode) => void execFileSync("mount", ["-o", `remount,${mode}`, directory]),
  };
}
