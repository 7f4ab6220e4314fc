// Processes of a supervisor that was killed. The kernel kills them with it; without setpriv they
// notice the closed channel and stop by themselves, but their database went down too, and one that
// waits for it would hold its port for seconds. Nothing durable is theirs, so they are soon killed.

import { allEnded, signalIfAlive } from "@holdfast/kit/processes";
import { livingChildren, type UpFile } from "./up-file.ts";

const patienceMs = 500;
const killDeadlineMs = 10_000;

export async function endLeftOverChildren(file: UpFile, onProgress: (text: string) => void): Promise<string[]> {
  const left = livingChildren(file);
  if (left.length === 0) return [];
  const names = left.map(({ name }) => name);
  onProgress(`waiting for ${names.join(", ")} of an earlier run to exit`);
  const processes = left.map((one) => one.process);
  if (!(await allEnded(processes, patienceMs))) {
    for (const one of processes) signalIfAlive(one, "SIGKILL");
    await allEnded(processes, killDeadlineMs);
  }
  return names;
}
