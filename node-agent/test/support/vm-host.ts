// A VM host of a test's own: real QEMU under TCG, the small guest as its only image, directories that go with the test.
// Deadlines run on a clock that the test may move.

import { createHash, randomUUID } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import type { VmHostReport, VmLaunch } from "@holdfast/contracts/node/vm-host";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { smallGuest } from "../../../testkit/guests/small-guest.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import type { VmDriver } from "../../src/drivers/qemu/driver.ts";
import { qemuDriver } from "../../src/drivers/qemu/qemu-driver.ts";
import type { VmHostSetup } from "../../src/vms/host-setup.ts";
import { createVmHost, type VmHost } from "../../src/vms/vms.ts";

/** This host's answer is known, and a probe costs a boot: `boot-probe.test.ts` asks it for real. */
export const withoutProbe: VmDriver = {
  ...qemuDriver,
  probe: async (name) => ({ usable: name === "tcg", detail: name === "tcg" ? "a guest booted" : "not probed" }),
};

export type VmPlace = {
  root: string;
  stateDir: string;
  setup: VmHostSetup;
  image: { id: string; sha256: string };
};

/** Directories with an image, and nothing else. */
export function vmPlace(changes: Partial<VmHostSetup> = {}): VmPlace {
  const root = scratchDirectory();
  const directories = {
    images: join(root, "base"),
    cloudInit: join(root, "ci"),
    overlays: join(root, "overlays"),
  };
  for (const path of [join(root, "state"), ...Object.values(directories)]) mkdirSync(path);
  const file = join(directories.images, "small.qcow2");
  copyFileSync(smallGuest(), file);
  const sha256 = createHash("sha256").update(readFileSync(file)).digest("hex");
  const setup: VmHostSetup = {
    directories,
    network: { backend: "user", interface: undefined, uplink: true },
    accelerator: "auto",
    limits: { vcpus: 16, memoryMib: 4096 },
    mostVms: 8,
    serialBytes: 256 * 1024,
    warm: [],
    imageSources: [],
    qemu: { version: "test", path: "/usr/bin/qemu-system-x86_64" },
    ...changes,
  };
  return { root, stateDir: join(root, "state"), setup, image: { id: "small", sha256 } };
}

export type RunningVmHost = {
  host: VmHost;
  log: { message: string; fields: Record<string, unknown> }[];
  /** Moves the clock of all deadlines. */
  pass(seconds: number): void;
  /** Resolves with the first report that satisfies it. */
  reported(holds: (report: VmHostReport) => boolean): Promise<VmHostReport>;
};

export async function startVmHost(
  place: VmPlace,
  options: { driver?: VmDriver; start?: boolean; takeUserData?: (vmId: string) => Promise<string | null> } = {},
): Promise<RunningVmHost> {
  const log: RunningVmHost["log"] = [];
  const write = (message: string, fields: Record<string, unknown> = {}) => void log.push({ message, fields });
  const listeners = new Set<() => void>();
  let moved = 0;
  const host = createVmHost({
    ...{ driver: options.driver ?? withoutProbe, setup: place.setup, stateDir: place.stateDir },
    ...{ bootId: "this boot", family: "linux", now: () => uptime() + moved },
    takeUserData: options.takeUserData ?? (async () => null),
    onChange: () => {
      for (const listener of listeners) listener();
    },
    log: { debug: write, info: write, warn: write, error: write },
  });
  atEnd(() => host.stop());
  await host.start();
  return {
    host,
    log,
    pass(seconds) {
      moved += seconds;
      host.checkDeadlines();
    },
    reported: (holds) =>
      new Promise((resolve) => {
        const look = () => {
          const report = host.report();
          if (!holds(report)) return;
          listeners.delete(look);
          resolve(report);
        };
        listeners.add(look);
        look();
      }),
  };
}

export function launchParams(place: VmPlace, changes: Partial<VmLaunch> = {}): VmLaunch {
  return {
    ...{ vm_id: randomUUID(), image: place.image, vcpus: 1, memory_mib: 192, disk_gib: null, accelerator: "auto" },
    ...{ hostname: "small", user_data: "#!/bin/sh\necho user data ran\n", ttl_seconds: 3600 },
    ...{ connect_within_seconds: 600, disconnect_grace_seconds: 60 },
    ...changes,
  };
}

export function launch(host: VmHost, wanted: VmLaunch, enter: (phase: string) => void = () => undefined) {
  return host.launch({ taskId: randomUUID(), wanted, enter, signal: new AbortController().signal });
}

export function terminate(host: VmHost, vmId: string, graceMs = 0) {
  return host.terminate({ vmId, graceMs, enter: () => undefined, signal: new AbortController().signal });
}

export const stateIn = (report: VmHostReport, vmId: string) =>
  report.vms.find(({ vm_id }) => vm_id === vmId)?.state;
