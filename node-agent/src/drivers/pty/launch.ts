// Starts a holder so that it outlives the agent. Under systemd it becomes a service of its own, because
// the agent's service would end it on restart and confine the shell like the agent;
// elsewhere a session of its own is enough. Either way it is ready when its socket gets its final name.
//
// Root's holders start with the limits of a shell and in a mount namespace of their own, where the kernel allows it:
// both are inherited by the shell, and neither can be removed by it.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { hasSystemd, type ShellLimits } from "./confinement.ts";
import type { Launch } from "./driver.ts";

const program = fileURLToPath(new URL("./holder.mjs", import.meta.url));

/** Reduce memory and threads. */
const flags = ["--max-semi-space-size=1", "--v8-pool-size=0"];

/** The holder's own environment. The shell's environment is part of the start message. */
const environment = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };

export function commandOf({ id, orphanSeconds }: { id: string; orphanSeconds: number }): string[] {
  return [process.execPath, ...flags, program, id, String(orphanSeconds)];
}

/** Tested first, because a container may forbid either. `private` informs the holder that it has its own mounts. */
const confining = `
limits=$1; shift
if unshare --mount --propagation slave true; then set -- unshare --mount --propagation slave "$@" private; fi
if prlimit $limits true; then set -- prlimit $limits "$@"; fi
exec "$@"`;

function confined(command: string[], { processes, openFiles }: ShellLimits): string[] {
  if (process.geteuid?.() !== 0) return command;
  const limits = `--core=0 --nproc=${processes} --nofile=${openFiles}`;
  return ["sh", "-c", confining, "sh", limits, ...command];
}

export const launchWith =
  (limits: ShellLimits): Launch =>
  (holder) =>
    hasSystemd() ? underSystemd(holder, limits) : detached(holder, limits);

type LaunchLimited = (holder: Parameters<Launch>[0], limits: ShellLimits) => ReturnType<Launch>;

const underSystemd: LaunchLimited = (holder, limits) =>
  start(
    [
      ...["systemd-run", "--quiet", "--collect", `--unit=holdfast-terminal-${holder.id}`],
      "--description=Terminal of a tenant of Holdfast",
      `--working-directory=${holder.directory}`,
      // Processes that the tenant left running survive, as after ssh; an out-of-memory kill does not end the others.
      ...["--property=KillMode=process", "--property=OOMPolicy=continue"],
      ...[`--property=TasksMax=${limits.processes}`, `--property=MemoryMax=${limits.memoryBytes}`],
      ...Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`),
      ...["--", ...confined(commandOf(holder), limits)],
    ],
    holder.directory,
  );

const detached: LaunchLimited = (holder, limits) => start(confined(commandOf(holder), limits), holder.directory);

function start([file = "", ...args]: string[], cwd: string): ReturnType<Launch> {
  const child = spawn(file, args, { cwd, env: environment, detached: true, stdio: "ignore" });
  child.unref();
  return {
    onFailure(report) {
      child.once("error", (error) => report(error.message));
      child.once("exit", (code, signal) => {
        // systemd-run itself succeeds at once.
        if (code !== 0) report(`it ended with ${signal ?? code}`);
      });
    },
  };
}
