// Whether /work of a run was ever full. The kernel counts no refused writes, so its free space is looked at while the run goes
// on, and once more at its end: an open descriptor keeps the file system until then, although the namespace is gone.

import { closeSync, openSync, statfsSync } from "node:fs";
import type { ProcessIdentity } from "@holdfast/kit/processes";

const LOOK_MS = 250;

export type WorkWatch = { wasFull(): boolean; close(): void };

/** `first`: of the namespace, before the script begins: what is at /work is what was mounted there. */
export function watchWork(first: ProcessIdentity): WorkWatch {
  const descriptor = openSync(`/proc/${first.pid}/root/work`, "r");
  let full = false;
  const look = () => {
    full ||= statfsSync(`/proc/self/fd/${descriptor}`).bavail === 0;
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();
  return {
    wasFull() {
      look();
      return full;
    },
    close() {
      clearInterval(timer);
      closeSync(descriptor);
    },
  };
}
