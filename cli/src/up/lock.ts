// One supervisor per data directory. The lock is the kernel's (flock): it belongs to our open file
// and ends with us, even after kill -9, so there is no stale lock to judge. Node cannot lock files,
// but util-linux can lock one that we hand it: the lock stays with the file we both have open.

import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { UsageError } from "@holdfast/kit/settings";

export type Lock = { release(): void };

/** Undefined when another process still holds it after `waitSeconds`. */
export async function takeLock(path: string, waitSeconds = 0): Promise<Lock | undefined> {
  const file = openSync(path, "a", 0o600);
  const code = await flock(file, waitSeconds).catch((error: Error) => {
    closeSync(file);
    throw new UsageError(
      `\`flock\` of util-linux could not be run: ${error.message}. On Debian: apt install util-linux`,
    );
  });
  if (code === 0) return { release: () => closeSync(file) };
  closeSync(file);
  return undefined;
}

function flock(file: number, waitSeconds: number): Promise<number | null> {
  const patience = waitSeconds === 0 ? ["--nonblock"] : ["--wait", String(waitSeconds)];
  const child = spawn("flock", [...patience, "3"], { stdio: ["ignore", "ignore", "ignore", file] });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
}
