// This host for real, and hosts that are not at hand as directories.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { runTask } from "../../testkit/tasks/run-task.ts";
import contract from "./contract.ts";
import { probe } from "./probe.ts";

function hostWith(files: Record<string, string>, symbolicLinks: Record<string, string> = {}): string {
  const root = mkdtempSync(join(tmpdir(), "holdfast-health-"));
  atEnd(() => rmSync(root, { recursive: true, force: true }));
  const place = (path: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    return join(root, path);
  };
  for (const [path, content] of Object.entries(files)) writeFileSync(place(path), `${content}\n`);
  for (const [path, to] of Object.entries(symbolicLinks)) symlinkSync(to, place(path));
  return root;
}

describe("this host", () => {
  it("DIAG-01 tells its kernel, memory and disk, phase by phase", async () => {
    const { result, phases } = await runTask("diag.health_probe", {});
    expect(result).toMatchObject({
      kernel: readFileSync("/proc/sys/kernel/osrelease", "utf8").trim(),
      memory: { total_bytes: expect.any(Number) },
      kvm: { device_present: existsSync("/dev/kvm") },
    });
    expect(result.uptime_seconds).toBeGreaterThan(0);
    expect(phases).toEqual(["system", "virtualization", "devices", "links"]);
  });

  it("TASK-09 stops when it is cancelled", async () => {
    const cancel = new AbortController();
    const onPhase = () => cancel.abort();
    await expect(runTask("diag.health_probe", {}, { onPhase, signal: cancel.signal })).rejects.toThrow("aborted");
  });
});

describe("another host", () => {
  const pci = "sys/bus/pci/devices";

  it("DIAG-01 tells GPUs, VFIO, IOMMU groups and fabric links", () => {
    const root = hostWith(
      {
        "proc/sys/kernel/osrelease": "6.1.0-test",
        "proc/uptime": "3600.25 7000.00",
        "proc/loadavg": "0.50 1.25 2.00 1/234 5678",
        "proc/meminfo": "MemTotal:       2048 kB\nMemFree:         512 kB\nMemAvailable:   1024 kB",
        "dev/kvm": "",
        "sys/module/vfio_pci/version": "1",
        "sys/module/vfio/version": "1",
        "sys/module/ext4/version": "1",
        "sys/kernel/iommu_groups/0/type": "DMA",
        "sys/kernel/iommu_groups/1/type": "DMA",
        [`${pci}/0000:41:00.0/class`]: "0x030200",
        [`${pci}/0000:41:00.0/vendor`]: "0x10de",
        [`${pci}/0000:41:00.0/device`]: "0x2330",
        [`${pci}/0000:41:00.0/numa_node`]: "1",
        [`${pci}/0000:81:00.0/class`]: "0x120000",
        [`${pci}/0000:81:00.0/vendor`]: "0x1ed5",
        [`${pci}/0000:81:00.0/device`]: "0x0001",
        [`${pci}/0000:81:00.0/numa_node`]: "-1",
        [`${pci}/0000:01:00.0/class`]: "0x020000",
        "sys/class/net/lo/operstate": "unknown",
        "sys/class/net/br0/operstate": "down",
        "sys/class/net/ens1/operstate": "up",
        "sys/class/net/ens1/speed": "200000",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)",
      },
      {
        [`${pci}/0000:41:00.0/driver`]: "../../drivers/vfio-pci",
        [`${pci}/0000:41:00.0/iommu_group`]: "../../../kernel/iommu_groups/1",
        "sys/class/net/ens1/device": "../../devices/0000:01:00.0",
      },
    );
    const health = probe(root);
    expect(contract.result.parse(health)).toEqual(health);
    expect(health).toMatchObject({
      kernel: "6.1.0-test",
      uptime_seconds: 3600.25,
      load: [0.5, 1.25, 2],
      memory: { total_bytes: 2048 * 1024, free_bytes: 512 * 1024, available_bytes: 1024 * 1024 },
      kvm: { device_present: true, device_opens: true },
      vfio_modules: ["vfio", "vfio_pci"],
      iommu_groups: 2,
      infiniband: [{ device: "mlx5_0", port: "1", state: "4: ACTIVE", rate: "400 Gb/sec (4X NDR)" }],
    });
    expect(health.gpus).toEqual([
      {
        ...{ address: "0000:41:00.0", vendor_id: "0x10de", device_id: "0x2330", vendor: "NVIDIA" },
        ...{ driver: "vfio-pci", numa_node: 1, iommu_group: "1" },
      },
      {
        ...{ address: "0000:81:00.0", vendor_id: "0x1ed5", device_id: "0x0001", vendor: null },
        ...{ driver: null, numa_node: null, iommu_group: null },
      },
    ]);
    expect(health.links).toEqual([
      { name: "ens1", state: "up", hardware: true, driver: null, speed_mbps: 200_000 },
      { name: "br0", state: "down", hardware: false, driver: null, speed_mbps: null },
    ]);
  });

  it("DIAG-01 tells what it can of a host that tells nothing", () => {
    const health = probe(hostWith({}));
    expect(contract.result.parse(health)).toEqual(health);
    expect(health).toMatchObject({
      ...{ kernel: null, uptime_seconds: null, load: null, memory: null, iommu_groups: 0 },
      ...{ kvm: { device_present: false, device_opens: false }, vfio_modules: [], gpus: [], links: [] },
    });
  });

  it("DIAG-01 does not mistake nonsense for numbers", () => {
    const root = hostWith({ "proc/uptime": "soon", "proc/loadavg": "1.0 x 2", "proc/meminfo": "MemTotal: many" });
    expect(probe(root)).toMatchObject({ uptime_seconds: null, load: null, memory: null });
  });

  it("DIAG-01 names a device that is there and does not open", () => {
    const root = hostWith({}, { "dev/kvm": "/nowhere" });
    expect(probe(root).kvm).toEqual({ device_present: true, device_opens: false });
  });

  it("DIAG-01 keeps to the size its contract promises on a host with very many links", () => {
    const many = Array.from({ length: 1000 }, (_, n) => [`sys/class/net/veth${n}/operstate`, "up"]);
    const health = probe(hostWith(Object.fromEntries(many)));
    expect(health.links).toHaveLength(128);
    expect(JSON.stringify(health).length).toBeLessThan(contract.resultBytes);
  });
});
