// GPUs and other accelerators, from the PCI bus: no driver and no vendor tool
// has to be installed.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HostFacts } from "@holdfast/contracts/node/protocol";

type Accelerator = HostFacts["accelerators"][number];

/** By PCI vendor: which device classes count. A card's sound and USB functions have classes of their own. */
const vendors: Record<string, { name: string; classes: RegExp }> = {
  "0x10de": { name: "nvidia", classes: /^0x(03|12)/ },
  "0x1002": { name: "amd", classes: /^0x(03|12)/ },
  // Nearly every Intel processor has a display of class 0300; only a 3D controller is there to compute.
  "0x8086": { name: "intel", classes: /^0x(0302|12)/ },
};
const MOST = 64;

export function findAccelerators(root: string): Accelerator[] {
  const bus = join(root, "sys/bus/pci/devices");
  const found: Accelerator[] = [];
  for (const address of list(bus).sort()) {
    const device = join(bus, address);
    const vendor = vendors[read(join(device, "vendor"))];
    if (!vendor?.classes.test(read(join(device, "class")))) continue;
    found.push({ vendor: vendor.name, model: modelOf(root, device, address), address });
  }
  return found.slice(0, MOST);
}

/** The driver's name for it, otherwise the vendor's device id. */
function modelOf(root: string, device: string, address: string): string {
  const ofNvidia = /^Model:\s*(.+)$/m.exec(
    read(join(root, "proc/driver/nvidia/gpus", address, "information")),
  )?.[1];
  const name = ofNvidia?.trim() || read(join(device, "product_name")) || read(join(device, "device"));
  return name.replaceAll("\0", "").slice(0, 200);
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
