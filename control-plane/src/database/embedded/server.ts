// Starts the postmaster and waits until it accepts connections. It runs in a session of its own, so
// that Ctrl-C at the terminal reaches only us and we stop it last.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { backoffDelay } from "@holdfast/kit/backoff";
import type { Account } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { dyingWithUs } from "./launch.ts";
import { readPidFile } from "./left-over.ts";

export type ServerExit = { code: number | null; signal: NodeJS.Signals | null };
export type Server = { pid: number; exited: Promise<ServerExit>; kill(signal: NodeJS.Signals): void };

export type ServerOptions = {
  binaries: Binaries;
  account: Account | undefined;
  args: string[];
  dataDirectory: string;
  logFile: string;
  signal?: AbortSignal;
  onProgress(text: string): void;
};

const largestLog = 10 * 1024 * 1024;
const slowStartMs = 2_000;
const retry = { firstMs: 50, maxMs: 1_000 };
const mostAttempts = 20;

/** Tries again while processes of a killed server still hold its shared memory. */
export async function startServer(options: ServerOptions): Promise<Server> {
  rotate(options.logFile);
  for (let attempt = 0; ; attempt += 1) {
    const logStart = sizeOf(options.logFile);
    const server = launch(options);
    const refusal = await readyOrExit(server, options);
    if (refusal === undefined) return server;
    const said = readFileSync(options.logFile).subarray(logStart).toString("utf8").trim();
    const held = /pre-existing shared memory block|lock file ".*" already exists/.test(said);
    if (!held || attempt === mostAttempts || options.signal?.aborted) {
      throw new Error(
        `PostgreSQL did not start (${refusal.signal ?? `exit ${refusal.code}`}):\n${lastLines(said)}`,
      );
    }
    if (attempt === 0) options.onProgress("an earlier PostgreSQL still holds the database, trying again");
    await new Promise((resolve) => setTimeout(resolve, backoffDelay(retry, attempt)));
  }
}

/** A fast shutdown rolls open transactions back and writes a checkpoint; `hurry` leaves that to the next start. */
export async function stopServer(server: Server, hurry: boolean): Promise<void> {
  const signals = hurry ? (["SIGQUIT", "SIGKILL"] as const) : (["SIGINT", "SIGQUIT", "SIGKILL"] as const);
  for (const signal of signals) {
    server.kill(signal);
    if (await settlesWithin(server.exited, signal === "SIGINT" ? 20_000 : 5_000)) return;
  }
}

function launch(options: ServerOptions): Server {
  const { binaries, account, args, logFile } = options;
  const log = openSync(logFile, "a", 0o600);
  const how = dyingWithUs({ account, program: binaries.postgres, args, signal: "INT" });
  const child = spawn(how.command, how.args, { ...how.spawn, detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  const { pid } = child;
  const exited = exitOf(child);
  if (pid === undefined) throw new Error(`${how.command} could not be started`);
  return { pid, exited, kill: (signal) => void child.kill(signal) };
}

function exitOf(child: ChildProcess): Promise<ServerExit> {
  return new Promise((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
}

/** Returns undefined when the server is ready, which the postmaster writes into its pid file. */
async function readyOrExit(server: Server, options: ServerOptions): Promise<ServerExit | undefined> {
  const abort = () => server.kill("SIGQUIT");
  options.signal?.addEventListener("abort", abort);
  if (options.signal?.aborted) abort();
  let exit: ServerExit | undefined;
  void server.exited.then((ended) => {
    exit = ended;
  });
  const started = Date.now();
  let reported = false;
  while (exit === undefined) {
    const file = readPidFile(options.dataDirectory);
    if (file?.ready && file.pid === server.pid) break;
    if (!reported && Date.now() - started > slowStartMs) {
      options.onProgress("PostgreSQL is replaying its log after an unclean stop");
      reported = true;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  options.signal?.removeEventListener("abort", abort);
  return exit;
}

function rotate(logFile: string): void {
  if (sizeOf(logFile) > largestLog) renameSync(logFile, `${logFile}.1`);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function lastLines(text: string): string {
  return text.split("\n").slice(-8).join("\n");
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const deadline = Promise.withResolvers<false>();
  const timer = setTimeout(() => deadline.resolve(false), ms);
  const settled = await Promise.race([promise.then(() => true), deadline.promise]);
  clearTimeout(timer);
  return settled;
}
