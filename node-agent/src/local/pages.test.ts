import { describe, expect, it } from "vitest";
import { hostReport } from "../../../testkit/api/leases.ts";
import { vmCapacity } from "./pages.ts";

describe("the capacity of a VM host", () => {
  it("AGENT-07 has the names that its operators know, what is physical, allocatable and free, and I/O pressure", () => {
    const amount = (vcpus: number, memory_mib: number) => ({ vcpus, memory_mib, disk_mib: 10 });
    const capacity = {
      ...{ physical: amount(16, 32_768), allocatable: amount(12, 26_214), free: amount(3, 1024), most_vms: 8 },
    };
    expect(vmCapacity(hostReport({ capacity, io_pressure_percent: 1.5 }))).toEqual({
      ...{ cpu_total: 12, cpu_free: 3, ram_total_mb: 26_214, ram_free_mb: 1024 },
      vm_host: {
        ...{ ...capacity, vms: 0, io_pressure_percent: 1.5, selected_accel: "kvm", problem: null },
      },
    });
  });

  it("AGENT-07 is absent on other hosts", () => {
    expect(vmCapacity(undefined)).toEqual({});
  });
});
