// Many terminals at once: what each costs in memory while nobody types, and how long a key takes while some of
// the others stream.

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { processesOf } from "./borrowed-user.ts";
import { type Echo, measureEcho } from "./measures.ts";
import type { OurTerminals } from "./ours.ts";
import { openAtPrompt, type Terminal, type TerminalSide } from "./terminal.ts";

export const IDLE_SESSIONS = 50;
export const SESSIONS = 500;
export const STREAMING = 10;

export type Crowd = { megabytes: number; quietP99: number; steadyP99: number; pouringP99: number };

/** A busy log: some 100 kB in a second, in fifty pieces. */
const STEADY = `perl -e '$|=1; while (1) { print "a line of the output of some program\\n" x 54; select undef, undef, undef, 0.02 }'`;
/** All that the way takes. */
const POURING = "yes a line of the output of some program";
const INTERRUPT = "\x03";

/** What is opened at the same time: the agent takes as many. */
const OPENING = 8;
const SETTLE_MS = 3_000;
const KEYS = 500;

export async function measureCrowd(ours: OurTerminals): Promise<Crowd> {
  const terminals: Terminal[] = [];
  try {
    const before = growing(ours);
    await openMany(ours, terminals, IDLE_SESSIONS);
    await pause(SETTLE_MS);
    const megabytes = (growing(ours) - before + holding(ours.uid)) / IDLE_SESSIONS;
    await openMany(ours, terminals, SESSIONS);
    const [typing, ...others] = terminals;
    if (!typing) throw new Error("no terminal is open");
    const quiet = await measureEcho(typing, KEYS);
    const steady = await echoBeside(STEADY, typing, others.slice(0, STREAMING));
    const pouring = await echoBeside(POURING, typing, others.slice(0, STREAMING));
    return { megabytes, quietP99: quiet.p99, steadyP99: steady.p99, pouringP99: pouring.p99 };
  } finally {
    await inParallel(terminals, (terminal) => terminal.close());
  }
}

async function echoBeside(command: string, typing: Terminal, streaming: Terminal[]): Promise<Echo> {
  for (const terminal of streaming) terminal.write(`${command}\n`);
  await pause(SETTLE_MS);
  const echo = await measureEcho(typing, KEYS);
  for (const terminal of streaming) terminal.write(INTERRUPT);
  await pause(SETTLE_MS);
  return echo;
}

/** Megabytes that sshd takes for one session. */
export async function memoryOfSsh(ssh: TerminalSide & { serverPid: number }): Promise<number> {
  const terminals: Terminal[] = [];
  try {
    await openMany(ssh, terminals, IDLE_SESSIONS);
    await pause(SETTLE_MS);
    const servers = descendantsOf(ssh.serverPid).filter((pid) => commandOf(pid).startsWith("sshd"));
    return sum(servers.map(proportionalMegabytes)) / IDLE_SESSIONS;
  } finally {
    await inParallel(terminals, (terminal) => terminal.close());
  }
}

/** Until there are so many; says how many there were when it went no further. */
async function openMany(side: TerminalSide, terminals: Terminal[], many: number): Promise<void> {
  const wanted = Array.from({ length: many - terminals.length });
  await inParallel(wanted, async () => {
    try {
      terminals.push(await openAtPrompt(side));
    } catch (error) {
      throw new Error(`with ${terminals.length} terminals open: ${(error as Error).message}`);
    }
  });
}

async function inParallel<T>(items: readonly T[], work: (item: T) => unknown): Promise<void> {
  const left = items.values();
  const lane = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: OPENING }, lane));
}

function growing({ pids }: OurTerminals): number {
  return proportionalMegabytes(pids.agent) + proportionalMegabytes(pids.gateway);
}

/** The shells themselves are the tenant's, and alike on every side. */
function holding(uid: number): number {
  const holders = processesOf(uid).filter((pid) => commandOf(pid).startsWith("holdfast-terminal"));
  return sum(holders.map(proportionalMegabytes));
}

function descendantsOf(ancestor: number): number[] {
  const parents = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0)
    .map((pid) => ({ pid, parent: parentOf(pid) }));
  const below = (pid: number): number[] =>
    parents.filter((one) => one.parent === pid).flatMap((one) => [one.pid, ...below(one.pid)]);
  return below(ancestor);
}

const parentOf = (pid: number) => Number(/^PPid:\s+(\d+)$/m.exec(textOf(`/proc/${pid}/status`))?.[1]);
const commandOf = (pid: number) => textOf(`/proc/${pid}/cmdline`);

/** Pages that several processes share are counted once, in parts. */
function proportionalMegabytes(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB$/m.exec(textOf(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024;
}

/** Nothing, of a process that has ended meanwhile. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
