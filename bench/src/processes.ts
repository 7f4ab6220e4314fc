// Memory and processor time of a process, from /proc.

import { readdirSync, readFileSync } from "node:fs";

export function residentKb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Of a process and of all that it started, those that have ended included. */
export function processorSecondsOfAll(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const ended = (Number(fields[13]) + Number(fields[14])) / 100;
  return children.reduce((sum, child) => sum + secondsIfThere(Number(child)), processorSeconds(pid) + ended);
}

function secondsIfThere(pid: number): number {
  try {
    return processorSeconds(pid);
  } catch {
    return 0;
  }
}

/** User and system time, which Linux counts in hundredths of a second on every architecture of ours. */
export function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/**
 * As the scheduler counted it, for what uses less than a hundredth of a second now and then: a clock tick finds it running or not by
 * chance. Of threads that still exist.
 */
export function processorMilliseconds(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}
