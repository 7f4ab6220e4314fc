// Keeps one process running. It runs in a session of its own, so that Ctrl-C at the terminal
// reaches only the supervisor, and says over the IPC channel when it serves. When the supervisor dies
// the kernel kills it: its database goes at the same moment, nothing durable is its own, and one that
// is still loading its code would miss the closed channel. When it ends unasked it is started again,
// ever more slowly while it keeps failing.

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
  /** Asked before every start: a restarted process gets the ports that it had. */
  environment(): Environment;
  logFile: string;
  onStarted(pid: number): void;
  onReady(ports: Record<string, number>): void;
  /** One line for the person at the terminal. */
  report(text: string): void;
};

export type Child = {
  /** Rejects when the first start is hopeless, with what the process said. */
  firstReady: Promise<void>;
  /** Asks it to end; `hurry` kills it, also when it was asked before. */
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

type Run = { process: ChildProcess; exited: Promise<Exit>; readyAt?: number; lastWords: string };
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
      if (!everReady && exit.code === usageExit) throw new UsageError(run.lastWords.trim());
      if (!everReady && failures + 1 >= mostFirstAttempts) {
        throw new Error(`${name} does not start (${describe(exit)}). Its last words:\n${run.lastWords.trim()}`);
      }
      if (run.readyAt !== undefined && Date.now() - run.readyAt > healthyAfterMs) failures = 0;
      report(`${name} ended unexpectedly (${describe(exit)}) and is started again. Log: ${options.logFile}`);
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
  const run: Run = { process: spawned, exited: exitOf(spawned), lastWords: "" };
  spawned.stderr?.on("data", (chunk: Buffer) => {
    log.write(chunk);
    run.lastWords = (run.lastWords + chunk.toString("utf8")).slice(-2000);
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
  return exit.signal ?? (exit.code === null ? "could not be run" : `exit code ${exit.code}`);
}
