// Runs the real `holdfast` command for tests: each in a data directory of its own, on free ports,
// without any setting of the machine that runs the tests. Whatever was started is ended afterwards.

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { postgresProcessesIn, readPidFile } from "@holdfast/control-plane/database/embedded/left-over";
import { identify, type ProcessIdentity } from "@holdfast/kit/processes";
import { type AgentRecord, readUpFile, type UpFile } from "../../cli/src/up/up-file.ts";

export type Ready = {
  ready: true;
  api_url: string;
  gateway_url: string;
  node_api_url: string;
  api_internal_url: string;
  node_terminal_url: string;
  gateway_internal_url: string;
  agent: AgentRecord | null;
  data_dir: string;
  database: { embedded: boolean; version: string };
  pid: number;
};

export type Outcome = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type Started = {
  process: ChildProcess;
  ready: Promise<Ready>;
  ended: Promise<Outcome>;
  /** What it has written so far. */
  printed(): { stdout: string; stderr: string };
};

export type Environment = Record<string, string>;

export type Installation = {
  dataDir: string;
  /** `holdfast up --json`. */
  up(env?: Environment): Started;
  /** Any command, while it runs. */
  start(args: string[], env?: Environment): Started;
  /** Any command, to its end. */
  /** `input`: what its standard input contains. */
  run(args: string[], env?: Environment, input?: string): Promise<Outcome>;
  upFile(): UpFile;
  postmaster(): number;
  /** Everything of this installation that runs, by kernel facts, without the supervisor. */
  processes(): ProcessIdentity[];
  cleanUp(): Promise<void>;
};

/** Of every listener that `holdfast up` opens. */
export const freePorts = {
  HOLDFAST_API_PORT: "0",
  HOLDFAST_GATEWAY_PORT: "0",
  HOLDFAST_NODE_API_PORT: "0",
  HOLDFAST_API_INTERNAL_PORT: "0",
  HOLDFAST_NODE_TERMINAL_PORT: "0",
  HOLDFAST_GATEWAY_INTERNAL_PORT: "0",
  HOLDFAST_AGENT_PORT: "0",
};

const command = fileURLToPath(new URL("../../cli/bin/holdfast.mjs", import.meta.url));

/** `command`: another copy of the product's. */
export function openInstallation(options: { command?: string } = {}): Installation {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-test-")));
  // PostgreSQL's account walks through it when the tests run as root.
  chmodSync(root, 0o711);
  const dataDir = join(root, "data");
  const postgresData = join(dataDir, "postgres/data");
  const started: Started[] = [];
  const start = (args: string[], env: Environment = {}, input?: string) => {
    const one = startCommand(
      [options.command ?? command, ...args],
      {
        ...cleanEnvironment(),
        HOLDFAST_DATA_DIR: dataDir,
        HOME: root,
        ...env,
      },
      input,
    );
    started.push(one);
    return one;
  };
  const upFile = () => {
    const file = readUpFile(`${dataDir}/up.json`);
    if (!file) throw new Error(`nothing runs on ${dataDir}`);
    return file;
  };
  const processes = () => {
    const supervisors = started.map((one) => one.process.pid);
    const children = processesWith(`HOLDFAST_DATA_DIR=${dataDir}`).filter(({ pid }) => !supervisors.includes(pid));
    return [...children, ...postgresProcessesIn(postgresData)];
  };
  return {
    dataDir,
    up: (env) => start(["up", "--json"], env),
    start: (args, env) => start(args, env),
    run: (args, env, input) => start(args, env, input).ended,
    upFile,
    postmaster: () => readPidFile(postgresData)?.pid ?? 0,
    processes,
    cleanUp: async () => {
      for (const { process: child } of started) child.kill("SIGTERM");
      await Promise.all(started.map(({ ended }) => ended));
      await until(() => processes().length === 0);
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Found by their environment, so that one which nobody recorded is found too. */
function processesWith(variable: string): ProcessIdentity[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => environmentOf(Number(pid)).includes(variable))
    .map((pid) => identify(Number(pid)))
    .filter((found) => found !== undefined);
}

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

/**
 * A question that takes long, such as a command, is asked less often: else it keeps the machine from what is waited for.
 * So does an api that is asked a hundred times a second.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (;;) {
    const asked = performance.now();
    if (await condition()) return;
    const tookMs = performance.now() - asked;
    await new Promise((resolve) => setTimeout(resolve, Math.max(50, 2 * tookMs)));
  }
}

/** Whether it returns 200. */
export async function answers(url: string): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.timeout(20_000) }).then(
    (response) => response.ok,
    () => false,
  );
}

function startCommand(args: string[], env: Environment, input?: string): Started {
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(process.execPath, args, {
    env,
    cwd: "/",
    stdio: [stdin, "pipe", "pipe"],
  }) as ChildProcessByStdio<Writable | null, Readable, Readable>;
  // One that ends before it reads is no failure of the test.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  let [stdout, stderr] = ["", ""];
  const ready = Promise.withResolvers<Ready>();
  // A test that expects a failure never asks whether it became ready.
  ready.promise.catch(() => undefined);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (stdout.startsWith('{"ready"') && stdout.includes("\n")) ready.resolve(JSON.parse(stdout) as Ready);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Outcome>((resolve) => {
    child.once("close", (code, signal) => {
      ready.reject(new Error(`holdfast ${args.join(" ")} ended with ${signal ?? code}:\n${stdout}${stderr}`));
      resolve({ code, signal, stdout, stderr });
    });
  });
  return { process: child, ready: ready.promise, ended, printed: () => ({ stdout, stderr }) };
}

function cleanEnvironment(): Environment {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && /^(PATH|LANG|TMPDIR|TZ)$/.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...freePorts };
}
