// Everything that a script has started, found by facts of the kernel: its group and session, its descendants, and a variable
// of the environment, which a process keeps that has left all of these.

import { readdirSync, readFileSync } from "node:fs";
import { type ProcessIdentity, type ProcessStat, readStat, signalIfAlive } from "@holdfast/kit/processes";

/**
 * `leader`: of the group and the session. Unknown after a restart of the agent, when the mark alone leads there. `argument`: that
 * helpers of a container engine have, which keep nothing of the environment.
 */
export type Tree = { mark: string; leader?: ProcessIdentity | undefined; argument?: string };

const PAUSE_MS = 5;
/** A tree that forks faster than it is killed is given up on after these. */
const MOST_ROUNDS = 400;

/** Those that are alive, without zombies. */
function processesOf({ mark, leader, argument }: Tree): ProcessIdentity[] {
  const all = new Map<number, ProcessStat>();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
    if (stat) all.set(Number(name), stat);
  }
  const found = new Set<number>();
  for (const [pid, { group, session, startTicks }] of all) {
    // What is older than the leader cannot be of its tree; most processes are, and their environments need not be read.
    if (pid === process.pid || Number(startTicks) < Number(leader?.startTicks ?? 0)) continue;
    const isNear = leader !== undefined && (group === leader.pid || session === leader.pid);
    const isNamed = argument !== undefined && partsOf(pid, "cmdline").includes(argument);
    if (isNear || isNamed || partsOf(pid, "environ").includes(mark)) found.add(pid);
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const [pid, { parent }] of all) if (found.has(parent)) found.add(pid);
  }
  return [...found].flatMap((pid) => {
    const stat = all.get(pid);
    return stat && stat.state !== "Z" ? { pid, startTicks: stat.startTicks } : [];
  });
}

export function isAlive(tree: Tree): boolean {
  return processesOf(tree).length > 0;
}

/** One round: what forks meanwhile may escape it. */
export function killOnce(tree: Tree): number {
  const found = processesOf(tree);
  for (const one of found) signalIfAlive(one, "SIGKILL");
  return found.length;
}

/** Until none is left. Returns whether that was reached. */
export async function killTree(tree: Tree): Promise<boolean> {
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (killOnce(tree) === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return false;
}

function partsOf(pid: number, file: "cmdline" | "environ"): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8").split("\0");
  } catch {
    return [];
  }
}
