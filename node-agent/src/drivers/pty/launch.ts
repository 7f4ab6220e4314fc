// Starts a holder so that it outlives the agent. Under systemd it becomes a service of its own, because
// the agent's would take it along when it is restarted and confine the shell as it confines the agent;
// elsewhere a session of its own is enough. Either way it is ready when its socket gets its final name.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export type Launch = (holder: { id: string; directory: string; orphanSeconds: number }) => {
  /** Called when it is known that it will not become ready. */
  onFailure(tell: (why: string) => void): void;
};

const program = fileURLToPath(new URL("./holder.mjs", import.meta.url));

/** They spare memory and threads. */
const flags = ["--max-semi-space-size=1", "--v8-pool-size=0"];

/** What a holder needs of its own. The shell's environment is told to it later. */
const environment = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };

export function commandOf({ id, orphanSeconds }: { id: string; orphanSeconds: number }): string[] {
  return [process.execPath, ...flags, program, id, String(orphanSeconds)];
}

export const launchHolder: Launch = (holder) => (hasSystemd() ? underSystemd(holder) : detached(holder));

/** As sd_booted(3) decides it. A user's own agent has no say over the system's services. */
function hasSystemd(): boolean {
  return process.geteuid?.() === 0 && existsSync("/run/systemd/system");
}

const underSystemd: Launch = (holder) =>
  start(
    [
      ...["systemd-run", "--quiet", "--collect", `--unit=holdfast-terminal-${holder.id}`],
      "--description=Terminal of a tenant of Holdfast",
      `--working-directory=${holder.directory}`,
      // What the tenant left running on purpose goes on, as it does after ssh; one killed for want of memory takes no others along.
      ...["--property=KillMode=process", "--property=OOMPolicy=continue", "--property=TasksMax=33%"],
      ...Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`),
      ...["--", ...commandOf(holder)],
    ],
    holder.directory,
  );

const detached: Launch = (holder) => start(commandOf(holder), holder.directory);

function start([file = "", ...args]: string[], cwd: string): ReturnType<Launch> {
  const child = spawn(file, args, { cwd, env: environment, detached: true, stdio: "ignore" });
  child.unref();
  return {
    onFailure(tell) {
      child.once("error", (error) => tell(error.message));
      child.once("exit", (code, signal) => {
        // systemd-run itself ends well and at once.
        if (code !== 0) tell(`it ended with ${signal ?? code}`);
      });
    },
  };
}
