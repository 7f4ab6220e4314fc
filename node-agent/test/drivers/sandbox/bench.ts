// Runs scripts in a driver under test. Processes are found on the host by their arguments: in a sandbox, a script does not know
// the ids that the host has for them.

import { readdirSync } from "node:fs";
import type { EnforcedLimit } from "@holdfast/contracts/execution/limits";
import { commandLine } from "@holdfast/kit/processes";
import { uuidv7 } from "@holdfast/kit/uuid";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import type {
  OutputStream,
  SandboxDriver,
  SandboxEnd,
  SandboxOrder,
  SandboxRun,
} from "../../../src/drivers/sandbox/driver.ts";

/** `leftovers`: what is on the host of any run of this driver, such as directories, cgroups, mounts and containers. */
export type Bench = {
  driver: SandboxDriver;
  withinMs: number;
  leftovers(): readonly string[] | Promise<readonly string[]>;
  /** Of every order, such as an image that this host has. */
  order?: Partial<SandboxOrder>;
};

/** `needs`: only drivers that provide this are checked. */
export type ContractCheck = {
  name: string;
  needs?: "isolation" | EnforcedLimit;
  check: (bench: Bench) => Promise<void>;
};

const MEBIBYTE = 1024 * 1024;
/** More than any check needs that does not exceed it. */
export const roomy = { memoryBytes: 256 * MEBIBYTE, cpus: 2, pids: 256, diskBytes: 64 * MEBIBYTE };

type Printed = SandboxEnd & { stdout: string; stderr: string };

export function start(
  bench: Bench,
  order: Partial<SandboxOrder>,
): { handle: SandboxRun; printed: Record<OutputStream, string> } {
  const printed = { stdout: "", stderr: "" };
  const handle = bench.driver.run({
    ...{ id: uuidv7(), shell: "sh", script: "", env: {}, network: false, image: "none", limits: roomy },
    onOutput: (stream, text) => {
      printed[stream] += text;
    },
    ...bench.order,
    ...order,
  });
  handle.ended.catch(() => undefined);
  atEnd(() => handle.kill());
  return { handle, printed };
}

export async function run(bench: Bench, order: Partial<SandboxOrder>): Promise<Printed> {
  const { handle, printed } = start(bench, order);
  return { ...(await ended(bench, handle)), ...printed };
}

export function ended(bench: Bench, handle: SandboxRun): Promise<SandboxEnd> {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`the run did not end within ${bench.withinMs} ms`)), bench.withinMs).unref();
  });
  return Promise.race([handle.ended, late]);
}

export async function until(bench: Bench, condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + bench.withinMs;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${bench.withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

let sleepers = 0;
/** A command that sleeps, and that nothing else on this host has. */
export function uniqueSleep(): string {
  sleepers += 1;
  return `sleep ${1_000_000 + process.pid * 100 + sleepers}`;
}

/** Processes of the host that run exactly this command. */
export function running(command: string): number[] {
  return allCommands().flatMap(([pid, line]) => (line === command ? [pid] : []));
}

export function allCommands(): [pid: number, line: string][] {
  return readdirSync("/proc").flatMap((name): [number, string][] => {
    const line = /^\d+$/.test(name) ? commandLine(Number(name)) : undefined;
    return line === undefined ? [] : [[Number(name), line]];
  });
}
