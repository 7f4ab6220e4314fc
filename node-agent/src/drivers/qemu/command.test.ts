import { describe, expect, it } from "vitest";
import { qemuArguments } from "./command.ts";
import type { VmProcess } from "./driver.ts";
import { vmOfTag } from "./find.ts";
import { isoImage } from "./iso9660.ts";

const vm: VmProcess = {
  ...{ hostTag: "0123456789ab", vmId: "01a1e13c-bc3d-71c5-9b58-aada3c2346d4", accelerator: "tcg", vcpus: 2 },
  ...{ memoryMib: 256, mac: "52:54:00:00:00:01", network: { backend: "user", uplink: true }, serialBytes: 1024 },
  files: {
    ...{ directory: "/vms/a", seed: "/vms/a,b/seed.iso", overlay: "/vms/o.qcow2", channel: "/vms/a/channel.sock" },
    ...{
      qmp: "/vms/a/qmp.sock",
      serialLog: "/vms/a/serial.log",
      serialInput: "/vm/serial.in",
      qemuLog: "/vms/a/qemu.log",
    },
    ...{ resolver: "/vms/a/resolv.conf", uplinkLog: "/vms/a/uplink.log" },
  },
};
const argumentsOf = (changes: Partial<VmProcess> = {}, asRoot = true) =>
  qemuArguments({ ...vm, ...changes }, { machine: "q35", asRoot }).join(" ");

describe("the command line of a VM", () => {
  it("VM-03 has the seed as a CD-ROM, no device that nobody asked for, and no privileges", () => {
    const text = argumentsOf();
    expect(text).toContain("scsi-cd,drive=seed");
    expect(text).toContain("-nodefaults -no-user-config");
    expect(text).toContain("spawn=deny");
    expect(text).toContain("-runas 65534:65534");
    expect(argumentsOf({}, false)).not.toContain("-runas");
  });
  it("VM-03 takes no option out of a path", () => {
    expect(argumentsOf()).toContain("file=/vms/a,,b/seed.iso,format=raw");
  });
  it("VM-03 has the network and accelerator of the VM", () => {
    expect(argumentsOf()).toContain("-netdev user,id=net,ipv6=off");
    expect(argumentsOf({ network: { backend: "tap", tap: "t0" } })).toContain(
      "tap,id=net,ifname=t0,script=no,downscript=no",
    );
    expect(argumentsOf({ accelerator: "kvm" })).toContain("-accel kvm -cpu host");
  });
  it.for([
    ["holdfast-0123456789ab-01a1e13c-bc3d-71c5-9b58-aada3c2346d4", "01a1e13c-bc3d-71c5-9b58-aada3c2346d4"],
    ["holdfast-ba9876543210-01a1e13c-bc3d-71c5-9b58-aada3c2346d4", undefined],
    ["xholdfast-0123456789ab-01a1e13c-bc3d-71c5-9b58-aada3c2346d4", undefined],
    ["holdfast-0123456789ab-../../etc", undefined],
  ] as const)("VM-05 is found by a tag of this host alone: %s", ([tag, expected]) => {
    expect(vmOfTag("0123456789ab", tag)).toBe(expected);
  });
});

describe("a seed's image", () => {
  it("VM-03 is an ISO 9660 volume with the name cidata and the names of its files", () => {
    const image = isoImage("cidata", { "user-data": "u".repeat(5000), "meta-data": "m" });
    expect(image.length % 2048).toBe(0);
    expect(image.subarray(32_769, 32_774).toString()).toBe("CD001");
    expect(image.subarray(32_808, 32_840).toString().trim()).toBe("cidata");
    expect(image.includes("user-data")).toBe(true);
    expect(image.subarray(21 * 2048, 21 * 2048 + 5001).toString()).toBe(`${"u".repeat(5000)}\0`);
    expect(image.subarray(24 * 2048, 24 * 2048 + 1).toString()).toBe("m");
  });
});
