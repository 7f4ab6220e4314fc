// Processes that a test run has left behind. Whatever tests start inherits the run's mark in its environment, or has it in
// its arguments, as the path of a directory of that run.

import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

/** What has just been stopped may take a moment to end. */
const PATIENCE_MS = 10_000;

/** Kills what is left once it had time to end; resolves with what had to be killed, a line each. */
export async function endLeftovers(mark, patienceMs = PATIENCE_MS) {
  let left = findProcesses(mark);
  for (const until = Date.now() + patienceMs; left.length > 0 && Date.now() < until; left = findProcesses(mark)) {
    await wait(100);
  }
  for (const { pid } of left) kill(pid);
  return left.map(({ pid, command }) => `${pid} ${command.slice(0, 200)}`);
}

function findProcesses(mark) {
  const numbers = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return numbers.flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    // A process that has ended and was not waited for has no command.
    if (command === "") return [];
    const marked = command.includes(mark) || read(`/proc/${pid}/environ`).includes(mark);
    return marked ? [{ pid: Number(pid), command }] : [];
  });
}

/** Empty if the process is gone or belongs to somebody else. */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
