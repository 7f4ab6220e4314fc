// VMs that are booted ahead of leases, on a real QEMU: what a guest learns and when, who gets their room, and what is left of them
// after agents that were killed, settings that were changed, and images that were replaced.

import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import { qemuDriver } from "../../src/drivers/qemu/qemu-driver.ts";
import { launchAndDie } from "../support/dying-launch.ts";
import { guard } from "../support/guarded-place.ts";
import { launch, startVmHost, stateIn, terminate, type VmPlace, vmPlace } from "../support/vm-host.ts";

const A_WHILE = 600_000;
const TINY = { vcpus: 1, memory_mib: 256, disk_gib: 1 };
const warm = (place: VmPlace, count: number): VmPlace => ({
  ...place,
  setup: { ...place.setup, warm: [{ imageId: "small", profile: "tiny", count }] },
});

async function guardedPlace() {
  const place = vmPlace();
  const { host } = await startVmHost(place);
  const guarded = await guard(place);
  host.stop();
  const { tag } = JSON.parse(readFileSync(join(place.stateDir, "vm-host.json"), "utf8")) as { tag: string };
  const living = () => qemuDriver.processes(tag).flatMap(({ vmId, main }) => (main ? vmId : []));
  /** What an owner does who no longer wants warm VMs. */
  const turnOff = async () => {
    const { host: last, ...rest } = await startVmHost(place);
    await expect.poll(living, { timeout: 60_000 }).toEqual(last.report().vms.map(({ vm_id }) => vm_id));
    return { host: last, ...rest };
  };
  return { place, guarded, living, turnOff };
}

describe.skipIf(lacksVms())("VMs that are booted ahead", () => {
  it(
    "VM-03 VM-05 wait without a lease, outlive agents, get their seed from the launch that takes one, and leave nothing",
    async () => {
      const { place, guarded, living, turnOff } = await guardedPlace();
      const first = await startVmHost(warm(place, 1));
      const waiting = await first.reported(({ warm_vms }) => warm_vms.length === 1);
      const pausedAt = Date.now();
      const [vm] = waiting.warm_vms;
      const vmId = vm?.vm_id ?? "";
      expect(vm).toEqual({
        ...{ vm_id: vmId, image_id: "small", image_sha256: place.image.sha256, accelerator: "tcg" },
        ...{ vcpus: 1, memory_mib: 256, disk_mib: 1024 },
      });
      expect(waiting).toMatchObject({ vms: [], capacity: { free: { vcpus: 15, memory_mib: 4096 - 256 } } });
      expect(waiting.images).toMatchObject([{ id: "small", references: 0 }]);
      const directory = join(place.setup.directories.cloudInit, vmId);
      expect(readFileSync(join(directory, "guest.json"), "utf8")).toContain('"seed_sha256":null');
      const { strays } = await first.host.inventory({ expected: [], remove: true });
      expect(strays.filter(({ vm_id }) => vm_id !== null)).toEqual([]);
      expect(living()).toEqual([vmId]);
      first.host.stop();

      // Killed before the VM is the lease's on record: it still waits, for anybody.
      const wanted = {
        ...guarded.params({ ...TINY, vm_id: vmId, hostname: "lease-1", connect_within_seconds: 300 }),
        user_data: 'echo "user data of $(hostname) at $(date +%s)"\n',
      };
      const killed = { place: warm(place, 1), wanted, adopts: 1, die: { change: 1, when: "before" } };
      expect(await launchAndDie(killed)).toBe("SIGKILL");
      const second = await startVmHost(warm(place, 1));
      await second.reported(({ warm_vms }) => warm_vms[0]?.vm_id === vmId);
      // Long enough for a clock that stood still to show it.
      await expect.poll(() => Date.now() - pausedAt, { timeout: 60_000 }).toBeGreaterThan(3000);
      const claimedAt = Math.floor(Date.now() / 1000);
      const phases: string[] = [];
      const { pid } = await launch(second.host, wanted, (phase) => phases.push(phase));
      expect(phases).toEqual(["claiming", "resuming", "recording_made"]);
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).toContain(vmId);
      await second.reported((one) => stateIn(one, vmId) === "connected");
      const log = join(directory, "serial.log");
      const said = () => /user data of (\S+) at (\d+)/.exec(readFileSync(log, "utf8"));
      await expect.poll(said, { timeout: 60_000 }).not.toBeNull();
      expect(said()?.[1]).toBe("lease-1");
      expect(Number(said()?.[2])).toBeGreaterThanOrEqual(claimedAt);
      expect(second.host.report().vms).toMatchObject([{ vm_id: vmId, memory_mib: 256 }]);
      await expect(launch(second.host, wanted)).rejects.toMatchObject({ code: "vm_exists" });

      // Another one takes its place, and dies with an agent that has given it to a lease and not recorded the end of that.
      const next = await second.reported(({ warm_vms }) => warm_vms.some(({ vm_id }) => vm_id !== vmId));
      second.host.stop();
      const taskId = randomUUID();
      const again = { ...wanted, vm_id: next.warm_vms[0]?.vm_id ?? "" };
      const cut = { place: warm(place, 1), wanted: again, taskId, adopts: 1 };
      expect(await launchAndDie({ ...cut, die: { change: 2, when: "before" } })).toBe("SIGKILL");
      const { host } = await turnOff();
      expect(await host.recover(taskId)).toBeUndefined();
      expect(living()).toEqual([vmId]);
      await terminate(host, vmId);
      await expect.poll(() => guarded.left(), { timeout: 60_000 }).toEqual([]);
      guarded.expectNothingLeft();
    },
    A_WHILE,
  );

  it(
    "VM-02 VM-03 give their room to leases, are not what a launch of another size gets, and go with their image",
    async () => {
      const { place, guarded, living, turnOff } = await guardedPlace();
      place.setup.limits.memoryMib = 300;
      const first = await startVmHost(warm(place, 1));
      const [vm] = (await first.reported(({ warm_vms }) => warm_vms.length === 1)).warm_vms;
      const larger = guarded.params({ vm_id: vm?.vm_id ?? "", memory_mib: 280 });
      const phases: string[] = [];
      await launch(first.host, larger, (phase) => phases.push(phase));
      expect(phases).toContain("overlay");
      expect(living()).toEqual([larger.vm_id]);
      expect(first.host.report()).toMatchObject({ warm_vms: [], vms: [{ memory_mib: 280 }] });
      await terminate(first.host, larger.vm_id);

      await expect.poll(() => living().length, { timeout: 60_000 }).toBe(1);
      const other = guarded.params({ memory_mib: 280 });
      await launch(first.host, other);
      expect(living()).toEqual([other.vm_id]);
      await terminate(first.host, other.vm_id);
      await first.reported(({ warm_vms }) => warm_vms.length === 1);
      const [late] = first.host.report().warm_vms;
      appendFileSync(join(place.setup.directories.images, "small.qcow2"), "x");
      const params = guarded.params({ ...TINY, vm_id: late?.vm_id ?? "" });
      await expect(launch(first.host, params)).rejects.toMatchObject({ code: "vm_image_changed" });
      first.host.stop();
      const { host } = await turnOff();
      expect(host.report().vms).toEqual([]);
      await expect.poll(() => guarded.left(), { timeout: 60_000 }).toEqual([]);
      guarded.expectNothingLeft();
    },
    A_WHILE,
  );

  it("VM-03 are not booted again and again when their guest ends before it looks for a seed", async () => {
    const { place, guarded, living, turnOff } = await guardedPlace();
    const { host, log, reported } = await startVmHost(warm(place, 1));
    await expect.poll(() => living().length, { timeout: 60_000 }).toBe(1);
    const [vmId = ""] = living();
    guarded.look();
    for (const { vmId: id, process: one } of qemuDriver.processes(
      (JSON.parse(readFileSync(join(place.stateDir, "vm-host.json"), "utf8")) as { tag: string }).tag,
    ))
      if (id === vmId) process.kill(one.pid, "SIGKILL");
    await expect
      .poll(() => log.find(({ message }) => message === "a VM could not be booted ahead"), { timeout: 60_000 })
      .toMatchObject({ fields: { image: "small", profile: "tiny" } });
    const { capacity } = await reported((report) => report.capacity.free.vcpus === 16);
    expect(capacity.free.memory_mib).toBe(4096);
    host.stop();
    await turnOff();
    await expect.poll(() => guarded.left(), { timeout: 60_000 }).toEqual([]);
    guarded.expectNothingLeft();
  });
});
