// One process under a bench. It leads a process group of its own, so that Ctrl-C at the terminal
// reaches the bench alone, and so that stopping it reaches also what it runs (npm, sh, node).

import { type ChildProcess, spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export type Program = {
  command: string;
  args: string[];
  cwd?: string;
  env?: Record<string, string>;
  stopSignal?: NodeJS.Signals;
  uid?: number;
  gid?: number;
};

export type RunningProgram = {
  pid: number;
  /** The first line of its output that is a JSON object; rejects with its last words when it ends before. */
  ready: Promise<unknown>;
  /** All of its output, once it ended with exit code 0. */
  output: Promise<string>;
  /** What it wrote to stderr so far. */
  said(): string;
  stop(): Promise<void>;
};

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** A bench measures defaults: settings in the caller's environment do not reach what it runs. */
export const plainEnvironment = {
  PATH: [join(root, "node_modules/.bin"), process.env["PATH"]].join(delimiter),
  HOME: process.env["HOME"] ?? "/",
};
const stopDeadlineMs = 20_000;
const longestOutput = 1024 * 1024;

export function launch(program: Program): RunningProgram {
  const { command, args, stopSignal = "SIGTERM" } = program;
  const { cwd, uid, gid } = program;
  const env = { ...plainEnvironment, ...program.env };
  const child = spawn(command, args, { cwd, uid, gid, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const ready = Promise.withResolvers<unknown>();
  const output = Promise.withResolvers<string>();
  // Not every program is asked for both.
  for (const { promise } of [ready, output]) promise.catch(() => undefined);
  let written = "";
  let complaints = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    written = (written + text).slice(-longestOutput);
    const line = /^\{.*\}$(?=\n)/m.exec(written)?.[0];
    if (line) ready.resolve(JSON.parse(line));
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints = (complaints + text).slice(-longestOutput);
  });
  const ended = endOf(child).then((how) => {
    const failure = new Error(
      `${[command, ...args].join(" ").slice(0, 200)} ended with ${how}:\n${complaints.trim()}`,
    );
    ready.reject(failure);
    if (how === 0) output.resolve(written);
    else output.reject(failure);
  });
  return {
    // Without one it never started, and says so through the others.
    pid: child.pid ?? 0,
    ready: ready.promise,
    output: output.promise,
    said: () => complaints,
    stop: async () => {
      signalGroup(child, stopSignal);
      const deadline = setTimeout(() => signalGroup(child, "SIGKILL"), stopDeadlineMs);
      await ended;
      clearTimeout(deadline);
    },
  };
}

/** `close` waits for everyone who holds the output, so also for what the process itself started. */
function endOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(code ?? signal ?? "nothing"));
  });
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Gone already.
  }
}
