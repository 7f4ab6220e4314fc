import type { HostHealth } from "@holdfast/contracts/node/host-health";
import { describe, expect, it } from "vitest";
import { describeHealth } from "./health.ts";

const now = Date.parse("2030-01-01T12:00:00Z");
const GiB = 1024 ** 3;
const link = (name: string, hardware: boolean, speed_mbps: number | null = null) => ({
  ...{ name, state: "up", hardware, driver: null, speed_mbps },
});
const host: HostHealth = {
  kernel: "6.1.0-13-amd64",
  uptime_seconds: 5 * 86_400,
  load: [0.5, 1.25, 2],
  memory: { total_bytes: 16 * GiB, free_bytes: GiB, available_bytes: 8 * GiB },
  root_disk: { total_bytes: 100 * GiB, free_bytes: 40 * GiB },
  kvm: { device_present: true, device_opens: true },
  vfio_modules: ["vfio", "vfio_pci"],
  iommu_groups: 12,
  gpus: [
    {
      ...{ address: "0000:41:00.0", vendor_id: "0x10de", device_id: "0x2330", vendor: "NVIDIA" },
      ...{ driver: "vfio-pci", numa_node: 1, iommu_group: "1" },
    },
  ],
  links: [link("ens1", true, 200_000), link("br0", false), link("veth1", false)],
  infiniband: [{ device: "mlx5_0", port: "1", state: "4: ACTIVE", rate: "400 Gb/sec" }],
};
const described = (changes: Partial<HostHealth> = {}) =>
  describeHealth({ observed_at: "2030-01-01T11:57:00Z", host: { ...host, ...changes } }, now);

describe("the health of a node", () => {
  it("DIAG-01 is printed with the age of the probe", () => {
    expect(described()).toEqual([
      "  health, probed 3 min ago",
      "    kernel     6.1.0-13-amd64, up 5 days",
      "    load       0.50 1.25 2.00",
      "    memory     8 GiB of 16 GiB free",
      "    root disk  40 GiB of 100 GiB free",
      "    KVM        available",
      "    VFIO       vfio, vfio_pci; 12 IOMMU groups",
      "    GPUs       NVIDIA at 0000:41:00.0 (vfio-pci)",
      "    links      ens1 up 200 Gb/s, 2 more",
      "    fabric     mlx5_0/1 4: ACTIVE 400 Gb/sec",
    ]);
  });

  it("DIAG-01 says which values the host does not report", () => {
    const nothing = described({
      ...{ kernel: null, uptime_seconds: null, load: null, memory: null, root_disk: null, gpus: [], links: [] },
      ...{
        kvm: { device_present: false, device_opens: false },
        vfio_modules: [],
        iommu_groups: 0,
        infiniband: [],
      },
    }).join("\n");
    expect(nothing).toMatch(/kernel +unknown\n.*load +unknown\n.*memory +unknown\n.*root disk +unknown\n/);
    expect(nothing).toMatch(/KVM +no device\n.*VFIO +no module; 0 IOMMU groups\n.*GPUs +none\n.*links +none$/);
    expect(described({ kvm: { device_present: true, device_opens: false } }).join("\n")).toContain("no access");
    expect(described({ links: [link("veth0", false)] }).join("\n")).toMatch(/links +1 virtual\n/);
  });

  it("DIAG-01 is left out before the first probe", () => {
    expect(describeHealth(null, now)).toEqual([]);
  });
});
