// VMs on a real QEMU, from the launch to the end. After each, nothing is left of it on the host, and what others have put beside
// it is untouched.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { qemuDriver } from "../../src/drivers/qemu/qemu-driver.ts";
import { guard } from "../support/guarded-place.ts";
import { launch, startVmHost, stateIn, terminate, vmPlace } from "../support/vm-host.ts";

const A_WHILE = 600_000;

/** Counts who connects to the host's loopback. */
async function loopbackListener() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return { port: (server.address() as { port: number }).port, connections: () => connections };
}

describe.skipIf(lacksVms())("a VM on this host", () => {
  it(
    "VM-03 VM-05 boots from an overlay, connects by its secret, keeps off the host's loopback, and leaves nothing",
    async () => {
      const place = vmPlace();
      const listener = await loopbackListener();
      const { host, reported, log } = await startVmHost(place);
      const guarded = await guard(place);
      // The last line is more than the serial log may hold.
      const user_data = `ip link set eth0 up; udhcpc -q -n -i eth0 -s /dhcp
echo | nc -w 2 10.0.2.2 ${listener.port} && echo REACHED || echo "no way to the host"
echo "disk $(cat /sys/block/vda/size)"; ls /mnt; yes 0123456789 | head -c 200000\n`;
      const wanted = guarded.params({ disk_gib: 1, user_data });
      const phases: string[] = [];
      const launched = await launch(host, wanted, (phase) => phases.push(phase));
      expect(phases).toEqual(["checking", "cloud_init", "overlay", "network", "qemu", "uplink", "recording_made"]);
      expect(log.map(({ fields }) => fields["stage"])).toEqual(
        expect.arrayContaining(["cloud-init", "overlay", "qemu"]),
      );
      const namespace = readlinkSync(`/proc/${launched.pid}/ns/net`);
      expect(namespace).not.toBe(readlinkSync("/proc/self/ns/net"));
      expect(readFileSync(`/proc/${launched.pid}/status`, "utf8")).toMatch(/^Uid:\t65534\t65534/m);

      const report = await reported((one) => stateIn(one, wanted.vm_id) === "connected");
      expect(guarded.look().join("\n")).toContain(`network namespace ${namespace}`);
      expect(report.capacity.free).toMatchObject({ vcpus: 15, memory_mib: 4096 - wanted.memory_mib });
      expect(report.images).toMatchObject([
        { id: "small", references: 1, sha256: place.image.sha256, problem: null },
      ]);
      const { serial_log } = launched;
      expect(serial_log).toBe(join(place.setup.directories.cloudInit, wanted.vm_id, "serial.log"));
      const older = `${serial_log}.1`;
      await expect.poll(() => existsSync(older), { timeout: 60_000 }).toBe(true);
      expect(statSync(older).size).toBe(place.setup.serialBytes / 2);
      expect(statSync(serial_log).size).toBeLessThanOrEqual(place.setup.serialBytes / 2);
      const said = readFileSync(older, "utf8");
      expect(said).toContain("no way to the host");
      expect(said).toContain(`disk ${2 * 1024 * 1024}`);
      expect(said).toMatch(/meta-data\s+user-data\s+vendor-data/);
      expect(listener.connections()).toBe(0);
      // The secret is in the seed alone: not in arguments, records or logs of the host.
      const secret = /secret=(\S{43})/.exec(readFileSync(join(serial_log, "../seed.iso"), "latin1"))?.[1] ?? "";
      expect(secret).toHaveLength(43);
      expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).not.toContain(secret);
      expect(said).not.toContain(secret);

      await expect(launch(host, wanted)).rejects.toMatchObject({ code: "vm_exists" });
      const dry = await host.inventory({ expected: [wanted.vm_id], remove: true });
      expect(dry.strays.map(({ name, action }) => ({ name, action }))).toEqual(
        expect.arrayContaining(guarded.foreign.map((name) => ({ name, action: "kept" }))),
      );
      expect(stateIn(host.report(), wanted.vm_id)).toBe("connected");

      const ended = await terminate(host, wanted.vm_id, 60_000);
      expect(ended).toMatchObject({
        existed: true,
        serial_tail: expect.stringContaining("0123456789\n0123456789"),
      });
      guarded.expectNothingLeft();
      expect(host.report()).toMatchObject({ vms: [], capacity: { free: { vcpus: 16 } } });
      expect(await terminate(host, wanted.vm_id)).toMatchObject({ existed: false, end: null });
    },
    A_WHILE,
  );

  it(
    "VM-04 VM-05 outlives the agent, connects to the next one with its session's secret, and ends by its TTL without a control plane",
    async () => {
      const place = vmPlace();
      const first = await startVmHost(place);
      const guarded = await guard(place);
      const wanted = guarded.params();
      const { pid } = await launch(first.host, wanted);
      await first.reported((one) => stateIn(one, wanted.vm_id) === "connected");
      first.host.stop();

      const second = await startVmHost(place);
      expect(stateIn(second.host.report(), wanted.vm_id)).toBe("disconnected");
      await second.reported((one) => stateIn(one, wanted.vm_id) === "connected");
      expect(existsSync(`/proc/${pid}`)).toBe(true);

      second.pass(wanted.ttl_seconds - 60);
      expect(stateIn(second.host.report(), wanted.vm_id)).toBe("connected");
      second.pass(61);
      const report = await second.reported((one) => stateIn(one, wanted.vm_id) === "ended");
      expect(report.vms).toMatchObject([{ end: "ttl" }]);
      guarded.expectNothingLeft();
      // It stays listed until the control plane has confirmed its end.
      expect(await terminate(second.host, wanted.vm_id)).toMatchObject({ existed: false, end: "ttl" });
      expect(second.host.report().vms).toEqual([]);
    },
    A_WHILE,
  );

  it(
    "VM-04 ends at its connect deadline, when its lease is gone, and when somebody kills it",
    async () => {
      const place = vmPlace();
      const { host, reported, pass } = await startVmHost(place);
      const guarded = await guard(place);
      const ended = (vmId: string) => reported((one) => stateIn(one, vmId) === "ended");
      const late = guarded.params({ connect_within_seconds: 100 });
      const unleased = guarded.params();
      const killed = guarded.params();
      for (const wanted of [late, unleased]) await launch(host, wanted);
      const { pid } = await launch(host, killed);
      const { strays } = await host.inventory({ expected: [late.vm_id, killed.vm_id], remove: false });
      expect(strays.filter(({ kind }) => kind === "vm")).toMatchObject([
        { vm_id: unleased.vm_id, action: "would_remove", why: "no lease has this VM" },
      ]);
      expect(stateIn(host.report(), unleased.vm_id)).toBe("booting");
      await host.inventory({ expected: [late.vm_id, killed.vm_id], remove: true });
      process.kill(pid, "SIGKILL");
      await ended(killed.vm_id);
      pass(101);
      const report = await ended(late.vm_id);
      const why = Object.fromEntries(report.vms.map(({ vm_id, end }) => [vm_id, end]));
      expect(why).toEqual({
        [late.vm_id]: "connect_deadline",
        [unleased.vm_id]: "no_lease",
        [killed.vm_id]: "process_gone",
      });
      guarded.expectNothingLeft();
    },
    A_WHILE,
  );

  it(
    "VM-03 finds by booting a guest which accelerators work",
    async () => {
      expect(await qemuDriver.probe("tcg")).toEqual({ usable: true, detail: "a guest booted" });
      expect(await qemuDriver.probe("nvmm")).toMatchObject({
        usable: false,
        detail: expect.stringContaining("nvmm"),
      });
    },
    A_WHILE,
  );
});
