// Runs GNU find. It walks by open directories and follows no link, so nobody can lead it elsewhere while it
// walks, and it does not take the agent's own time. What vanishes during the walk is not an error.

import { spawn } from "node:child_process";
import { findTool, ToolMissing, toolEnvironment } from "./tools.ts";

export type Found = {
  /** Places that could not be looked into, such as another user's FUSE mount. */
  unseen: number;
};

/** Calls `onRecord` for every NUL-terminated record that the expression prints. */
export function find(
  roots: readonly string[],
  expression: readonly string[],
  { onRecord, signal }: { onRecord: (record: string) => void; signal?: AbortSignal | undefined },
): Promise<Found> {
  if (roots.length === 0) return Promise.resolve({ unseen: 0 });
  const path = findTool("find");
  if (!path) throw new ToolMissing("This host has no find (findutils).");
  const args = ["-P", ...roots, "-ignore_readdir_race", "-xdev", ...expression];
  const child = spawn(path, args, {
    ...{ cwd: "/", env: toolEnvironment, stdio: ["ignore", "pipe", "pipe"] },
    ...(signal && { signal, killSignal: "SIGKILL" as const }),
  });
  let rest = "";
  let said = "";
  let unseen = 0;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    const records = (rest + chunk).split("\0");
    rest = records.pop() ?? "";
    records.forEach(onRecord);
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    said = (said + chunk).slice(-500);
    unseen += chunk.split("\n").length - 1;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, killedBy) => {
      // 1: some places could not be seen, and every other one was.
      if (code === 0 || (code === 1 && !isWrongUse(said))) resolve({ unseen });
      else reject(new Error(`find ended with ${killedBy ?? code}: ${said.trim()}`));
    });
  });
}

/** Only GNU find supports these options. */
function isWrongUse(said: string): boolean {
  return /unrecognized|unknown predicate|invalid (argument|option)/i.test(said);
}
