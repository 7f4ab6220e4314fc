// Keeps one process running. It runs in its own session, so that Ctrl-C at the terminal
// reaches only the supervisor, and reports over the IPC channel when it is ready. When the supervisor dies,
// the kernel kills it: its database stops at the same moment, it owns nothing durable, and a process that
// is still loading its code would miss the closed channel. When it exits unexpectedly it is restarted,
// with growing delays while it keeps failing.

import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { dyingWithUs } from "@holdfast/control-plane/database/embedded/launch";
import { backoffDelay } from "@holdfast/kit/backoff";
import type { ReadyMessage } from "@holdfast/kit/lifecycle";
import { type Environment, UsageError } from "@holdfast/kit/settings";
import { type LogFile, openLogFile } from "./log-file.ts";

export type ChildOptions = {
  name: string;
  /** Arguments for the same Node.js that runs us. */
  args: string[];
  /** Evaluated before every start, so that a restarted process gets the same ports. */
  environment(): Environment;
  logFile: string;
  onStarted(pid: number): void;
  onReady(ports: Record<string, number>): void;
  /** One line for the person at the terminal. */
  report(text: string): void;
};

export type Child = {
  /** Rejects when the first start fails for good, with the process's output. */
  firstReady: Promise<void>;
  /** Asks it to exit; `hurry` kills it, also when it was asked before. */
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

type Run = { process: ChildProcess; exited: Promise<Exit>; readyAt?: number; lastOutput: string };
type Exit = { code: number | null; signal: NodeJS.Signals | null };

const restart = { firstMs: 200, maxMs: 5_000 };
const healthyAfterMs = 30_000;
const stopDeadlineMs = 10_000;
const mostFirstAttempts = 5;
const usageExit = 2;
const logCheckMs = 5_000;

export function superviseChild(options: ChildOptions): Child {
  const { name, report } = options;
  const log = openLogFile(options.logFile);
  const logCheck = setInterval(() => log.keepWithinLimits(), logCheckMs);
  const stopping = new AbortController();
  const firstReady = Promise.withResolvers<void>();
  let current: Run | undefined;

  const keepRunning = async () => {
    let failures = 0;
    let everReady = false;
    while (!stopping.signal.aborted) {
      const run = startOnce(options, log, () => {
        everReady = true;
        firstReady.resolve();
      });
      current = run;
      const exit = await run.exited;
      if (stopping.signal.aborted) break;
      if (!everReady && exit.code === usageExit) throw new UsageError(run.lastOutput.trim());
      if (!everReady && failures + 1 >= mostFirstAttempts) {
        throw new Error(`${name} does not start (${describe(exit)}). Its last output:\n${run.lastOutput.trim()}`);
      }
      if (run.readyAt !== undefined && Date.now() - run.readyAt > healthyAfterMs) failures = 0;
      report(`${name} exited unexpectedly (${describe(exit)}); restarting. Log: ${options.logFile}`);
      await delay(backoffDelay(restart, failures), undefined, { signal: stopping.signal }).catch(() => undefined);
      failures += 1;
    }
  };
  const ended = keepRunning()
    .catch(firstReady.reject)
    .finally(() => {
      clearInterval(logCheck);
      log.close();
    });

  return {
    firstReady: firstReady.promise,
    stop: async ({ hurry }) => {
      stopping.abort();
      const kill = () => void current?.process.kill("SIGKILL");
      const deadline = setTimeout(kill, stopDeadlineMs);
      hurry.addEventListener("abort", kill);
      if (hurry.aborted) kill();
      else current?.process.kill("SIGTERM");
      await ended;
      clearTimeout(deadline);
      hurry.removeEventListener("abort", kill);
    },
  };
}

function startOnce(options: ChildOptions, log: LogFile, onFirstReady: () => void): Run {
  const { command, args } = dyingWithUs({
    account: undefined,
    program: process.execPath,
    args: options.args,
    signal: "KILL",
  });
  const spawned = spawn(command, args, {
    detached: true,
    env: options.environment() as NodeJS.ProcessEnv,
    stdio: ["ignore", log.file, "pipe", "ipc"],
  });
  const run: Run = { process: spawned, exited: exitOf(spawned), lastOutput: "" };
  spawned.stderr?.on("data", (chunk: Buffer) => {
    log.write(chunk);
    run.lastOutput = (run.lastOutput + chunk.toString("utf8")).slice(-2000);
  });
  spawned.on("message", (message: ReadyMessage) => {
    if (message.type !== "ready") return;
    run.readyAt = Date.now();
    options.onReady(message.ports);
    onFirstReady();
  });
  if (spawned.pid !== undefined) options.onStarted(spawned.pid);
  return run;
}

/** After `close` everything it wrote has arrived, which `exit` does not promise. */
function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
}

function describe(exit: Exit): string {
  return exit.signal ?? (exit.code === null ? "could not be started" : `exit code ${exit.code}`);
}
