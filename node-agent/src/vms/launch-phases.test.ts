// The phases of a launch on an invented host, crashed at every step. Files are real; processes and disks are entries of a set.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { filePhaseStore } from "@holdfast/tasks/phases/file-store";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import {
  type CrashTest,
  crashAfterEveryStep,
  failAtEveryStep,
  repeatEveryPhase,
} from "../../../testkit/phase-crash/every-step.ts";
import type { VmDriver } from "../drivers/qemu/driver.ts";
import { type LaunchContext, launchPhases } from "./launch-phases.ts";
import type { VmRecord } from "./record.generated.ts";

const vmId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const record: VmRecord = {
  ...{ vm_id: vmId, task_id: "t", host_tag: "0123456789ab", boot_id: "b", began_at: 0 },
  ...{ image: { id: "small", sha256: "0".repeat(64), path: "/base/small.qcow2", dev: "1", ino: "2" } },
  ...{ vcpus: 1, memory_mib: 64, disk_mib: 1, accelerator: "tcg", network: "bridge", ttl_seconds: 10 },
  // No VM has both a tap and an uplink; here both are made and undone.
  uplink: true,
  ...{ connect_within_seconds: null, disconnect_grace_seconds: null },
};

/** A driver on a host that is a set of what exists. */
function inventedDriver(existing: Set<string>): VmDriver {
  const nothing = async () => undefined as never;
  return {
    ...{ probe: nothing, inspectImage: nothing, processes: () => [], hasOpen: () => true, taps: async () => [] },
    createOverlay: async ({ path }) => void existing.add(path),
    removeOverlay: async (path) => void existing.delete(path),
    async start({ vmId: id }) {
      existing.add(`process of ${id}`);
      return { pid: 1, startTicks: "1" };
    },
    kill: async ({ vmId: id }) => void existing.delete(`process of ${id}`),
    connectUplink: async ({ vmId: id }) => void existing.add(`uplink of ${id}`),
    removeUplink: async ({ vmId: id }) => void existing.delete(`uplink of ${id}`),
    createTap: async ({ tap }) => void existing.add(tap),
    removeTap: async ({ tap }) => void existing.delete(tap),
  };
}

const places = new Map<LaunchContext, { existing: Set<string>; root: string }>();
const test: CrashTest<LaunchContext> = {
  async prepare() {
    // In memory: there are thousands of launches, and each syncs its files.
    const root = mkdtempSync("/dev/shm/holdfast-launches-");
    atEnd(() => rmSync(root, { recursive: true, force: true }));
    const existing = new Set<string>();
    const directories = { cloudInit: join(root, "ci"), overlays: join(root, "overlays") };
    for (const path of Object.values(directories)) mkdirSync(path);
    const wanted = { vm_id: vmId, hostname: "h", user_data: "", disk_gib: null };
    const context: LaunchContext = {
      ...{ driver: inventedDriver(existing), directories, serialBytes: 1 },
      launch: { record, wanted, interface: "br0", verifyBase: () => undefined },
    };
    places.set(context, { existing, root });
    return { phases: launchPhases, context, store: filePhaseStore(join(root, "state"), `vm-${vmId}`) };
  },
  expectMade({ context, store }, step) {
    const { existing, root } = places.get(context) ?? { existing: new Set(), root: "" };
    expect([...existing].sort(), step).toEqual(
      [
        ...[join(root, `overlays/holdfast-0123456789ab-${vmId}.qcow2`), "hfaada3c2346d4"],
        ...[`process of ${vmId}`, `uplink of ${vmId}`],
      ].sort(),
    );
    expect(readdirSync(join(root, "ci", vmId)).sort(), step).toEqual([
      ".holdfast",
      "guest.json",
      "process.json",
      "seed.iso",
    ]);
    expect(readdirSync(join(root, "ci")), step).toEqual([vmId]);
    expect(store.read()?.state, step).toBe("made");
  },
  expectNothing({ context, store }, step) {
    const { existing, root } = places.get(context) ?? { existing: new Set(["lost"]), root: "" };
    expect([...existing], step).toEqual([]);
    expect(readdirSync(join(root, "ci")), step).toEqual([]);
    expect(store.read(), step).toBeUndefined();
  },
};

describe("the launch of a VM", () => {
  it("VM-05 is finished or undone completely after a crash at every step", async () => {
    const steps = await crashAfterEveryStep(test);
    expect(steps).toContain("after act of qemu");
    expect(steps).toHaveLength(24);
  });
  it("VM-05 may have every phase repeated", () => expect(repeatEveryPhase(test)).resolves.toBeUndefined());
  it("VM-05 undoes everything when any phase fails", () => expect(failAtEveryStep(test)).resolves.toBeUndefined());

  it("VM-05 neither uses nor removes a directory that is not Holdfast's", async () => {
    const operation = await test.prepare();
    const directory = join(operation.context.directories.cloudInit, vmId);
    mkdirSync(directory);
    const { runPhases } = await import("@holdfast/tasks/phases/phases");
    await expect(runPhases(operation)).rejects.toMatchObject({ code: "vm_exists" });
    expect(existsSync(directory)).toBe(true);
    expect(operation.store.read()).toBeUndefined();
  });
});
