// A process on a host of a lab. Its output goes to a file, and its lines can be waited for.

import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import type { ReadyMessage } from "@holdfast/kit/lifecycle";
import type { Host } from "./host.ts";

export type Line = Record<string, unknown> & { msg?: string; reason?: string; correlation_id?: string };

export type RunningProgram = {
  name: string;
  pid: number;
  /** When it says so over its channel; rejects when it ends before. */
  ready: Promise<Record<string, number>>;
  ended: Promise<void>;
  /** All that were written so far. */
  lines(): Line[];
  /** The first line from `after` on that this is true for: of those that were written, else of those to come. */
  line(wanted: (line: Line) => boolean, after: number): Promise<Line>;
  /** Over its channel. */
  send(message: object): void;
  signal(signal: NodeJS.Signals): void;
  /** By default as an operator would. */
  stop(signal?: NodeJS.Signals): Promise<void>;
};

export type ProgramOptions = {
  host: Host;
  name: string;
  command: readonly string[];
  env?: Record<string, string>;
  /** Where its output is added to. */
  logFile: string;
};

export function start({ host, name, command, env = {}, logFile }: ProgramOptions): RunningProgram {
  const [program = "", ...args] = [...host.enter, ...command];
  const child: ChildProcess = spawn(program, args, {
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "", HOME: "/root", ...env },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const log = createWriteStream(logFile, { flags: "a" });
  child.stderr?.pipe(log, { end: false });
  const lines: { at: number; line: Line }[] = [];
  const waiting = new Set<(line: Line) => void>();
  if (child.stdout) {
    createInterface({ input: child.stdout }).on("line", (text) => {
      log.write(`${text}\n`);
      const line = parse(text);
      if (!line) return;
      lines.push({ at: Date.now(), line });
      for (const notify of [...waiting]) notify(line);
    });
  }
  const ready = Promise.withResolvers<Record<string, number>>();
  ready.promise.catch(() => undefined);
  child.on("message", (message) => ready.resolve((message as ReadyMessage).ports));
  const ended = new Promise<void>((resolve) => {
    const end = (how: unknown) => {
      ready.reject(new Error(`${name} ended with ${how} before it was ready`));
      resolve();
    };
    child.once("error", (error) => end(error.message));
    child.once("exit", (code, signal) => end(code ?? signal));
  });
  child.once("close", () => log.end());
  return {
    name,
    pid: child.pid ?? 0,
    ready: ready.promise,
    ended,
    lines: () => lines.map(({ line }) => line),
    line(wanted, after) {
      const found = lines.find(({ at, line }) => at >= after && wanted(line));
      if (found) return Promise.resolve(found.line);
      return new Promise((resolve) => {
        const look = (line: Line) => {
          if (!wanted(line)) return;
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
      });
    },
    send: (message) => void child.send(message),
    signal: (signal) => void child.kill(signal),
    async stop(signal = "SIGTERM") {
      child.kill("SIGCONT");
      child.kill(signal);
      await ended;
    },
  };
}

function parse(text: string): Line | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
