// Ends every process of one of our users. Processes that fork and end quickly are never seen whole in
// /proc: one look may find nobody while they go on. So everything is also signalled at once with the
// user's own rights, because the kernel lets no fork slip through a signal to -1.

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { identify, signalIfAlive } from "@holdfast/kit/processes";
import { assertOurs } from "./accounts.ts";
import { runTool, ToolMissing } from "./tools.ts";

/** What has ended, and whether any is left when the time is over. */
export type Ended = { ended: number; remaining: number };

export async function endProcesses(
  uid: number,
  {
    signal,
    graceMs = 3_000,
    withinMs = 20_000,
  }: { signal?: AbortSignal; graceMs?: number; withinMs?: number } = {},
): Promise<Ended> {
  assertOurs(uid);
  const met = new Set<string>();
  const meet = (name: NodeJS.Signals) => {
    for (const pid of processesOf(uid)) {
      const found = identify(pid);
      if (!found) continue;
      met.add(`${pid}:${found.startTicks}`);
      signalIfAlive(found, name);
    }
  };
  meet("SIGTERM");
  const begun = Date.now();
  while (processesOf(uid).length > 0 && Date.now() - begun < graceMs) await sleep(20, undefined, { signal });
  let allSignalled = false;
  while ((!allSignalled || processesOf(uid).length > 0) && Date.now() - begun < withinMs) {
    meet("SIGKILL");
    allSignalled = await killAllAtOnce(uid);
    if (processesOf(uid).length > 0) await sleep(20, undefined, { signal });
  }
  return { ended: met.size, remaining: processesOf(uid).length || (allSignalled ? 0 : 1) };
}

/** As real or effective user. Zombies are over already, and only their parent can clear them away. */
export function processesOf(uid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && runsAs(pid, uid));
}

function runsAs(pid: number, uid: number): boolean {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return false; // Gone since the directory was read.
  }
  if (/^State:\t[ZX]/m.test(status)) return false;
  const [, real, effective] = /^Uid:\t(\d+)\t(\d+)/m.exec(status) ?? [];
  return Number(real) === uid || Number(effective) === uid;
}

/** Whether it was done: a process of the user may have killed the tool first. */
async function killAllAtOnce(uid: number): Promise<boolean> {
  try {
    const { stderr } = await runTool("kill", ["-KILL", "-1"], { uid, gid: uid, timeoutMs: 5_000 });
    // By its words: procps ends with 1 whether it signalled anybody or not.
    return stderr === "" || stderr.includes("No such process");
  } catch (error) {
    if (error instanceof ToolMissing) throw error;
    return false;
  }
}
