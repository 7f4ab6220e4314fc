// Reads the state of a host from /proc and /sys. The root directory is a parameter, so that tests can
// show it hosts that are not at hand. What is missing there is null or empty, never an error.

import { closeSync, constants, openSync, readdirSync, readFileSync, readlinkSync, statfsSync } from "node:fs";
import { basename, join } from "node:path";
import type { z } from "zod";
import type contract from "./contract.ts";

export type Health = z.input<typeof contract.result>;

const MOST = { gpus: 64, links: 128, vfio: 32 };
const vendors: Record<string, string> = { "0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel" };

/** Calls `enter` before each part. */
export function probe(root: string, enter: (phase: string) => void = () => {}): Health {
  enter("system");
  const system = {
    kernel: text(root, "proc/sys/kernel/osrelease"),
    uptime_seconds: numbers(text(root, "proc/uptime"), 1)?.[0] ?? null,
    load: load(root),
    memory: memory(root),
    root_disk: rootDisk(root),
  };
  enter("virtualization");
  const virtualization = {
    kvm: kvm(root),
    vfio_modules: names(root, "sys/module")
      .filter((name) => name.startsWith("vfio"))
      .slice(0, MOST.vfio),
    iommu_groups: names(root, "sys/kernel/iommu_groups").length,
  };
  enter("devices");
  const gpus = names(root, "sys/bus/pci/devices").filter((address) => isGpu(root, address));
  enter("links");
  return {
    ...system,
    ...virtualization,
    gpus: gpus.slice(0, MOST.gpus).map((address) => gpu(root, address)),
    links: links(root),
    infiniband: infiniband(root),
  };
}

function load(root: string): Health["load"] {
  const [one, five, fifteen] = numbers(text(root, "proc/loadavg"), 3) ?? [];
  return one === undefined || five === undefined || fifteen === undefined ? null : [one, five, fifteen];
}

function memory(root: string): Health["memory"] {
  const meminfo = text(root, "proc/meminfo") ?? "";
  const bytes = (field: string) => {
    const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(meminfo)?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  };
  const [total, free] = [bytes("MemTotal"), bytes("MemFree")];
  if (total === undefined || free === undefined) return null;
  return { total_bytes: total, free_bytes: free, available_bytes: bytes("MemAvailable") ?? free };
}

function rootDisk(root: string): Health["root_disk"] {
  try {
    const { bsize, blocks, bavail } = statfsSync(root);
    return { total_bytes: bsize * blocks, free_bytes: bsize * bavail };
  } catch {
    return null;
  }
}

function kvm(root: string): Health["kvm"] {
  try {
    closeSync(openSync(join(root, "dev/kvm"), constants.O_RDWR));
    return { device_present: true, device_opens: true };
  } catch {
    return { device_present: names(root, "dev").includes("kvm"), device_opens: false };
  }
}

/** Class 0x03 is display controllers, 0x12 processing accelerators. */
function isGpu(root: string, address: string): boolean {
  return /^0x(03|12)/.test(text(root, "sys/bus/pci/devices", address, "class") ?? "");
}

function gpu(root: string, address: string): Health["gpus"][number] {
  const read = (name: string) => text(root, "sys/bus/pci/devices", address, name);
  const vendor_id = read("vendor") ?? "";
  const node = Number(read("numa_node") ?? -1);
  return {
    address,
    vendor_id,
    device_id: read("device") ?? "",
    vendor: vendors[vendor_id] ?? null,
    driver: target(root, "sys/bus/pci/devices", address, "driver"),
    // The kernel says -1 where there is one node only.
    numa_node: node >= 0 ? node : null,
    iommu_group: target(root, "sys/bus/pci/devices", address, "iommu_group"),
  };
}

function links(root: string): Health["links"] {
  return names(root, "sys/class/net")
    .filter((name) => name !== "lo")
    .map((name) => {
      const speed = Number(text(root, "sys/class/net", name, "speed") ?? -1);
      return {
        name,
        state: text(root, "sys/class/net", name, "operstate") ?? "unknown",
        hardware: target(root, "sys/class/net", name, "device") !== null,
        driver: target(root, "sys/class/net", name, "device/driver"),
        speed_mbps: speed > 0 ? speed : null,
      };
    })
    .sort((one, other) => Number(other.hardware) - Number(one.hardware))
    .slice(0, MOST.links);
}

function infiniband(root: string): Health["infiniband"] {
  return names(root, "sys/class/infiniband")
    .flatMap((device) =>
      names(root, `sys/class/infiniband/${device}/ports`).map((port) => {
        const read = (name: string) => text(root, "sys/class/infiniband", device, "ports", port, name);
        return { device, port, state: read("state"), rate: read("rate") };
      }),
    )
    .slice(0, MOST.links);
}

function text(...path: string[]): string | null {
  try {
    return readFileSync(join(...path), "utf8").trim();
  } catch {
    return null; // Absent, or the driver returns an error, as for the speed of a link that is down.
  }
}

function names(...path: string[]): string[] {
  try {
    return readdirSync(join(...path)).sort();
  } catch {
    return [];
  }
}

function target(...path: string[]): string | null {
  try {
    return basename(readlinkSync(join(...path)));
  } catch {
    return null;
  }
}

function numbers(source: string | null, count: number): number[] | null {
  const found = (source ?? "").split(/\s+/).slice(0, count).map(Number.parseFloat);
  return found.length === count && found.every(Number.isFinite) ? found : null;
}
