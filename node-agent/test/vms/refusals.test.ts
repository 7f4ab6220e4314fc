// Launches that must not succeed, on a real QEMU that boots nothing, and agents that die in the middle of one. Nothing is left of
// any of them.

import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { beforeAll, describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import type { VmDriver } from "../../src/drivers/qemu/driver.ts";
import { launchAndDie } from "../support/dying-launch.ts";
import { type Guard, guard } from "../support/guarded-place.ts";
import { smallFileSystem } from "../support/small-file-system.ts";
import {
  launch,
  type RunningVmHost,
  startVmHost,
  stateIn,
  terminate,
  type VmPlace,
  vmPlace,
  withoutProbe,
} from "../support/vm-host.ts";

const A_WHILE = 600_000;
const sha256Of = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

describe.skipIf(lacksVms())("a launch is refused, and leaves nothing,", () => {
  let place: VmPlace;
  let running: RunningVmHost;
  let guarded: Guard;
  beforeAll(async () => {
    place = vmPlace();
    running = await startVmHost(place);
    guarded = await guard(place);
  }, A_WHILE);

  const refused = async (wanted: VmLaunch, host = running.host) => {
    const failure = await launch(host, wanted).then(
      () => undefined,
      (error: { code: string; message: string }) => error,
    );
    guarded.expectNothingLeft();
    expect(host.report().vms).toEqual([]);
    return { code: failure?.code, message: failure?.message };
  };
  const imagePath = (id: string) => join(place.setup.directories.images, `${id}.qcow2`);

  it.for<[string, Partial<VmLaunch>, string, RegExp]>([
    [
      "for an image that is not there",
      { image: { id: "none", sha256: "0".repeat(64) } },
      "vm_image_missing",
      /none[.]qcow2/,
    ],
    [
      "for another digest",
      { image: { id: "small", sha256: "0".repeat(64) } },
      "vm_image_changed",
      /0{64} was expected/,
    ],
    [
      "for an accelerator that boots nothing",
      { accelerator: "kvm" },
      "vm_accelerator_unsupported",
      /kvm: not probed/,
    ],
    ["for more processors than there are", { vcpus: 17 }, "vm_no_capacity", /17 vCPUs; 16 are free/],
    ["for more memory than there is", { memory_mib: 4097 }, "vm_no_capacity", /4097 MiB of memory/],
    ["for more disk than there is", { disk_gib: 65_536 }, "vm_no_capacity", /MiB of disk/],
  ])("VM-03 VM-09 %s", async ([, changes, code, message]) => {
    expect(await refused(guarded.params(changes))).toEqual({ code, message: expect.stringMatching(message) });
  });

  it("VM-03 for an image that was changed in place, or has a backing or a data file", async () => {
    copyFileSync(imagePath("small"), imagePath("changing"));
    const image = { id: "changing", sha256: sha256Of(imagePath("changing")) };
    appendFileSync(imagePath("changing"), "x");
    expect(await refused(guarded.params({ image }))).toMatchObject({ code: "vm_image_changed" });
    rmSync(imagePath("changing"));

    const qemuImg = (...args: string[]) => execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", ...args]);
    qemuImg("-b", imagePath("small"), "-F", "qcow2", imagePath("backed"));
    qemuImg("-o", `data_file=${join(place.root, "base/data.raw")}`, imagePath("outside"), "1M");
    for (const [id, why] of [
      ["backed", "backing file"],
      ["outside", "data file"],
    ] as const) {
      const wanted = guarded.params({ image: { id, sha256: sha256Of(imagePath(id)) } });
      expect(await refused(wanted)).toEqual({ code: "vm_image_unusable", message: expect.stringContaining(why) });
      rmSync(imagePath(id));
    }
  });

  it(
    "VM-03 when the base is replaced between its check and QEMU",
    async () => {
      const replacing: VmDriver = {
        ...withoutProbe,
        async start(vm) {
          const process = await withoutProbe.start(vm);
          copyFileSync(imagePath("small"), imagePath("copy"));
          renameSync(imagePath("copy"), imagePath("small"));
          return process;
        },
      };
      const { host } = await startVmHost(place, { driver: replacing });
      expect(await refused(guarded.params(), host)).toMatchObject({ code: "vm_image_changed" });
    },
    A_WHILE,
  );

  it(
    "VM-03 VM-09 with QEMU's own message when QEMU does not start",
    async () => {
      const failing: VmDriver = {
        ...withoutProbe,
        start: (vm) => withoutProbe.start({ ...vm, mac: "not a mac" }),
      };
      const { host } = await startVmHost(place, { driver: failing });
      const failure = await refused(guarded.params(), host);
      expect(failure).toEqual({
        code: "vm_qemu_failed",
        message: expect.stringMatching(/stage qemu failed: .*not a mac/s),
      });
    },
    A_WHILE,
  );

  it("VM-03 when the disk is full while the overlay is made", async () => {
    const small = smallFileSystem(64 * 1024);
    writeFileSync(join(small.directory, "filler"), Buffer.alloc(60 * 1024));
    const directories = { ...place.setup.directories, overlays: small.directory };
    // Its owner promises more than there is.
    const { host } = await startVmHost({
      ...place,
      setup: { ...place.setup, directories, limits: { diskMib: 1000 } },
    });
    expect(await refused(guarded.params(), host)).toEqual({
      code: "vm_overlay_failed",
      message: expect.stringMatching(/Launch stage overlay failed: .*No space left on device/s),
    });
    expect(readdirSync(small.directory)).toEqual(["filler"]);
  });

  it("VM-03 for a bridge that is none, and without an interface", async () => {
    for (const [name, message] of [
      ["lo", /lo is not a bridge/],
      [undefined, /needs NODE_AGENT_NETWORK_INTERFACE/],
      ["hf-none", /does not exist/],
    ] as const) {
      const setup = { ...place.setup, network: { backend: "bridge" as const, interface: name, uplink: true } };
      const { host } = await startVmHost({ ...place, setup });
      expect(host.report().problem).toMatch(message);
      expect(await refused(guarded.params(), host)).toEqual({
        code: "vm_network_unusable",
        message: expect.stringMatching(message),
      });
    }
  });
});

/** Without an address and without a way out. */
function newBridge(): string {
  const name = `hft${randomUUID().slice(0, 8)}`;
  execFileSync("ip", ["link", "add", name, "type", "bridge"]);
  atEnd(() => execFileSync("ip", ["link", "delete", name]));
  return name;
}

describe.skipIf(lacksVms())("an agent that is killed while it launches a VM", () => {
  /** Seven while it is launched: six plans, and that it is complete. Then that it is undone, each step of it, and the end. */
  const launching = [1, 2, 3, 4, 5, 6, 7].flatMap((change) => [
    { change, when: "before" as const },
    { change, when: "after" as const },
  ]);
  const removing = [8, 9, 10, 11, 12, 13, 14].map((change) => ({ change, when: "after" as const }));

  it(
    "VM-05 leaves nothing that its successor does not remove, at every step of the journal",
    async () => {
      const bridge = newBridge();
      const place = vmPlace({ network: { backend: "bridge", interface: bridge, uplink: true } });
      await startVmHost(place);
      const guarded = await guard(place);
      const seen = new Set<string>();
      for (const die of [...launching, ...removing]) {
        const step = `${die.when} change ${die.change}`;
        const wanted = guarded.params();
        const taskId = randomUUID();
        expect(await launchAndDie({ place, wanted, die, taskId }), step).toBe("SIGKILL");
        for (const one of guarded.left()) seen.add(one.split(" ")[1] ?? "");
        const { host } = await startVmHost(place);
        const isComplete = die.change === 7 && die.when === "after";
        expect(await host.recover(taskId), step).toEqual(
          isComplete ? expect.objectContaining({ vm_id: wanted.vm_id, network: "bridge" }) : undefined,
        );
        expect(
          host.report().vms.map(({ state }) => state),
          step,
        ).toEqual(isComplete ? ["booting"] : []);
        await terminate(host, wanted.vm_id);
        guarded.expectNothingLeft(step);
        host.stop();
      }
      // The deaths left something of every kind to remove.
      expect(seen).toEqual(new Set(["file", "process", "socket", "link"]));
      expect(
        await launchAndDie({ place, wanted: guarded.params(), die: { change: 15, when: "before" } }),
      ).toBeNull();
      guarded.expectNothingLeft();
    },
    A_WHILE,
  );

  it(
    "VM-05 has its VM adopted when the launch was complete, and another process with the VM's pid is none of it",
    async () => {
      const place = vmPlace();
      await startVmHost(place);
      const guarded = await guard(place);
      const wanted = guarded.params();
      const taskId = randomUUID();
      await launchAndDie({ place, wanted, taskId });
      const { host } = await startVmHost(place);
      expect(await host.recover(taskId)).toMatchObject({ vm_id: wanted.vm_id, network: "user" });
      expect(stateIn(host.report(), wanted.vm_id)).toBe("booting");
      host.stop();
      const record = join(place.setup.directories.cloudInit, wanted.vm_id, "process.json");
      writeFileSync(record, JSON.stringify({ pid: process.pid, start_ticks: "1" }));
      const next = await startVmHost(place);
      expect(next.host.report().vms).toMatchObject([{ state: "ended", end: "process_gone" }]);
      await terminate(next.host, wanted.vm_id);
      guarded.expectNothingLeft();
    },
    A_WHILE,
  );

  it("VM-05 may have left things without a record: they are removed by their tag, and only by it", async () => {
    const place = vmPlace();
    const { host } = await startVmHost(place);
    const { tag } = JSON.parse(readFileSync(join(place.stateDir, "vm-host.json"), "utf8")) as { tag: string };
    const { overlays, cloudInit } = place.setup.directories;
    const id = randomUUID();
    const foreign = randomUUID();
    writeFileSync(join(overlays, `holdfast-${tag}-${id}.qcow2`), "");
    writeFileSync(join(overlays, `holdfast-${"0".repeat(12)}-${id}.qcow2`), "");
    for (const name of [id, foreign, `${id}.holdfast-${tag}-building`]) mkdirSync(join(cloudInit, name));
    writeFileSync(join(cloudInit, id, ".holdfast"), `holdfast-${tag}-${id}`);
    writeFileSync(join(cloudInit, foreign, ".holdfast"), `holdfast-${tag}-${id}`);
    const actions = async (remove: boolean) =>
      (await host.inventory({ expected: null, remove })).strays
        .map(({ kind, vm_id, action }) => [kind, vm_id, action])
        .sort();
    const expected = (action: string) =>
      [
        ["overlay", id, action],
        ["overlay", null, "kept"],
        ["seed", id, action],
        ["seed", id, action],
        ["seed", null, "kept"],
      ].sort();
    expect(await actions(false)).toEqual(expected("would_remove"));
    expect(await actions(true)).toEqual(expected("removed"));
    expect(await actions(true)).toEqual([
      ["overlay", null, "kept"],
      ["seed", null, "kept"],
    ]);
  });
});
