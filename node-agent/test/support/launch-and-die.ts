// A process that launches a VM, terminates it if it is to, and dies by SIGKILL right before or after one of the changes of its
// journal, as an agent that crashes. Started by tests with a JSON text as its only argument.

import { randomUUID } from "node:crypto";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { uptime } from "node:os";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import type { VmPlace } from "./vm-host.ts";

const {
  place,
  wanted,
  die,
  taskId,
  adopts = 0,
} = JSON.parse(process.argv[2] ?? "") as {
  place: VmPlace;
  wanted: VmLaunch;
  /** The how manieth change of the journal; undefined: it dies when the launch is complete. */
  die?: { change: number; when: "before" | "after" };
  taskId?: string;
  /** How many VMs that were booted ahead an earlier agent has left. */
  adopts?: number;
};
const kill = () => process.kill(process.pid, "SIGKILL");

let changes = 0;
/** Every change of the journal is a rename onto its file, or its removal. */
function dying<Call extends (...args: never[]) => unknown>(
  call: Call,
  pathOf: (args: Parameters<Call>) => unknown,
) {
  return ((...args: Parameters<Call>) => {
    const isChange = String(pathOf(args)) === `${place.stateDir}/phases/vm-${wanted.vm_id}.json`;
    if (isChange) changes += 1;
    const isDue = isChange && changes === die?.change;
    if (isDue && die?.when === "before") kill();
    const result = call(...args);
    if (isDue) kill();
    return result;
  }) as Call;
}
fs.renameSync = dying(fs.renameSync, ([, to]) => to);
fs.rmSync = dying(fs.rmSync, ([path]) => path);
syncBuiltinESMExports();

const { createVmHost } = await import("../../src/vms/vms.ts");
const { withoutProbe } = await import("./vm-host.ts");
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const host = createVmHost({
  ...{ driver: withoutProbe, setup: place.setup, stateDir: place.stateDir, bootId: "this boot" },
  ...{ family: "linux", now: uptime, onChange: () => undefined, log: quiet },
  takeUserData: async () => null,
});
await host.start();
// What was booted ahead is seen to be paused a moment after it was adopted.
while (host.report().warm_vms.length < adopts) await new Promise((resolve) => setTimeout(resolve, 20));
const unstopped = { enter: () => undefined, signal: new AbortController().signal };
await host.launch({ taskId: taskId ?? randomUUID(), wanted, ...unstopped });
if (!die) kill();
await host.terminate({ vmId: wanted.vm_id, graceMs: 0, ...unstopped });
// The journal had fewer changes than that.
process.exit(0);
