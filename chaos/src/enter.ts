// Gives a run a world of its own: network, mounts and processes in namespaces that end with their first process.
// Whatever a lab makes is in there and nowhere else, so it is gone with the run, also when that is killed:
// nothing has to be found and removed afterwards.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs a program inside, and returns its exit code. */
export function runInside(program: URL, args: readonly string[]): Promise<number> {
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"];
  const child = spawn("unshare", [...namespaces, "--", process.execPath, fileURLToPath(program), ...args], {
    // It holds the other end of the last one for as long as we live, and ends when that closes.
    stdio: ["ignore", "inherit", "inherit", "pipe"],
    // Ctrl-C at a terminal reaches us alone, and we pass it on.
    detached: true,
  });
  const commands = child.stdio[3] as NodeJS.WritableStream | null;
  commands?.on("error", () => undefined);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => commands?.write("stop\n"));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 137)));
  });
}
