// One process of bubblewrap and its descriptors. What it prints before the script begins is about itself, and becomes the
// message of a failed start.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import type { Duplex, Readable, Writable } from "node:stream";
import { allEnded, identify, type ProcessIdentity } from "@holdfast/kit/processes";
import type { SandboxOrder } from "../driver.ts";
import { withoutInherited } from "../inherited.ts";
import { followOutput } from "../output.ts";
import { userOfRun } from "../user-of-run.ts";
import { descriptors, GROUP, optionsOf, PASSWD } from "./arguments.ts";
import { seccompFilter } from "./seccomp.ts";
import type { Architecture } from "./syscalls.ts";

export type Wrapped = {
  /** The first process of the namespace, when the sandbox is complete and waits for the script. Undefined: it ended before. */
  ready: Promise<ProcessIdentity | undefined>;
  begin(): void;
  /** Resolves with the exit code when nothing is left in the namespace; rejects when the script was never begun. */
  ended: Promise<number | null>;
  kill(): void;
};

/**
 * No dump of memory, which a handler on the host might store. Closes what bubblewrap leaves open, says that it is there, waits for a line, and closes the descriptor before it
 * runs what follows.
 */
const PROGRAM = `ulimit -c 0; exec ${descriptors.options}<&-; echo >&${descriptors.control}; IFS= read -r go <&${descriptors.control} || exit 1; eval "exec ${descriptors.control}<&-
$(command -p cat <&${descriptors.control})"`;

const LONGEST_MESSAGE = 400;
const GONE_MS = 10_000;
const filter = seccompFilter(process.arch as Architecture);

export function startBubblewrap(
  program: string,
  order: SandboxOrder,
  attach: (pid: number) => Promise<void>,
): Wrapped {
  // What bubblewrap does not read, it would leave open in the script.
  const last = order.secret === undefined ? descriptors.group : descriptors.secret;
  const child = spawn(program, ["--args", `${descriptors.options}`, "--", order.shell, "-c", PROGRAM], {
    ...{ cwd: "/", env: {}, detached: true, ...userOfRun(order.id) },
    stdio: withoutInherited(["ignore", ...Array<"pipe">(last).fill("pipe")]),
  });
  const stream = <T>(fd: number) => child.stdio[fd] as T;
  const [status, control] = [stream<Readable>(descriptors.status), stream<Duplex>(descriptors.control)];
  let first: ProcessIdentity | undefined;
  let begun = false;
  let message = "";
  const say = (text: string) => {
    message = (message + text).slice(0, LONGEST_MESSAGE);
  };
  followOutput(child, (name, text) => (begun ? order.onOutput(name, text) : say(text)));
  for (const one of child.stdio.slice(3)) one?.on("error", () => undefined);

  const named = new Promise<void>((resolve) => {
    let text = "";
    status.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      const [, pid] = /"child-pid":\s*(\d+)/.exec(text) ?? [];
      if (pid === undefined) return;
      first ??= identify(Number(pid));
      resolve();
    });
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once("error", (error) => {
      say(error.message);
      resolve(null);
    });
    child.once("exit", (code, signal) => resolve(code ?? (signal ? 128 + constants.signals[signal] : null)));
  });
  const closed = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  const complete = new Promise<void>((resolve) => void control.once("data", () => resolve()));
  const ready = Promise.race([Promise.all([named, complete]).then(() => first), exited.then(() => undefined)]);

  /** Whatever still holds the output is found by its identity, or by its cgroup. */
  const giveUp = () => {
    for (const one of child.stdio) one?.destroy();
  };
  const feed = (fd: number, content: string | Buffer) => stream<Writable>(fd).end(content);
  feed(descriptors.filter, filter);
  feed(descriptors.passwd, PASSWD);
  feed(descriptors.group, GROUP);
  if (order.secret !== undefined) feed(descriptors.secret, order.secret);
  // Last, because it starts with its options. Others are served while the kernel moves it.
  const start = () =>
    feed(
      descriptors.options,
      optionsOf(order)
        .map((option) => `${option}\0`)
        .join(""),
    );
  if (child.pid !== undefined) {
    attach(child.pid).then(start, (error: Error) => {
      say(error.message);
      child.kill("SIGKILL");
    });
  }

  return {
    ready,
    begin() {
      begun = true;
      control.end(`\n${order.script}`);
    },
    ended: exited.then(async (exitCode) => {
      // The kernel ends the namespace with its first process; what its processes held open is closed then. Waiting for that
      // first costs no pause: most have ended by then.
      const late = setTimeout(giveUp, GONE_MS);
      await closed;
      clearTimeout(late);
      if (first && !(await allEnded([first], GONE_MS))) throw new Error("a process of the run cannot be ended");
      if (!begun) throw new Error(describe(message, order.shell));
      return exitCode;
    }),
    kill: () => void child.kill("SIGKILL"),
  };
}

function describe(message: string, shell: string): string {
  if (/execvp .*No such file/.test(message)) return `this host has no ${shell}`;
  return `the script could not be started: ${message.trim() || "bubblewrap was ended"}`;
}
