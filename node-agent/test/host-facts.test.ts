import { mkdirSync, writeFileSync } from "node:fs";
import os from "node:os";
import { dirname, join } from "node:path";
import { HostFacts } from "@holdfast/contracts/node/protocol";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { detectHost, type FactsOptions } from "../src/host/facts.ts";

/** A root directory with these files. */
function tree(files: Record<string, string>): string {
  const root = scratchDirectory();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content, { mode: 0o755 });
  }
  return root;
}

function facts(files: Record<string, string>, options: Partial<FactsOptions> = {}) {
  const system = { type: "Linux", release: "6.12.0" };
  const root = tree(files);
  return detectHost({
    agentVersion: "1",
    stateDir: root,
    advertisedAddress: null,
    root,
    system,
    ...options,
  }).hostFacts();
}

const device = (address: string, vendor: string, type: string, model = "0x2330") => ({
  [`sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
  [`sys/bus/pci/devices/${address}/class`]: `${type}\n`,
  [`sys/bus/pci/devices/${address}/device`]: `${model}\n`,
});

describe("host facts", () => {
  it("AGENT-08 this machine: everything is detected and has the form of the contract", () => {
    const host = detectHost({ agentVersion: "0.1.0", stateDir: "/nowhere/at/all", advertisedAddress: "10.0.0.9" });
    const found = host.hostFacts();
    expect(HostFacts.parse(found)).toEqual(found);
    expect(found).toMatchObject({ hostname: os.hostname(), arch: process.arch, advertised_address: "10.0.0.9" });
    expect(found.os.family).toBe(os.type().toLowerCase());
    expect(found.memory_free_bytes).toBeGreaterThan(0);
    expect(found.memory_free_bytes).toBeLessThan(found.memory_bytes);
    expect(found.disk.total_bytes, "of the directory it would be in").toBeGreaterThan(0);
    expect(host.bootId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.for([
    [
      "Debian",
      'PRETTY_NAME="Debian"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
      "Linux",
      "debian",
      "13",
    ],
    ["Alpine", "NAME='Alpine'\nID=alpine\nVERSION_ID=3.22.1\n", "Linux", "alpine", "3.22.1"],
    ["Arch, without versions", "ID=arch\nBUILD_ID=rolling\n", "Linux", "arch", "rolling"],
    ["an unknown Linux", "", "Linux", "linux", "6.12.0"],
    ["DragonFlyBSD", "", "DragonFly", "dragonflybsd", "6.12.0"],
  ])("AGENT-08 tells the system: %s", ([, release, type, flavour, version]) => {
    const files = release ? { "etc/os-release": release } : {};
    const found = facts(files as Record<string, string>, { system: { type: type ?? "", release: "6.12.0" } });
    expect(found.os).toEqual({ family: type?.toLowerCase(), flavour, version, kernel: "6.12.0" });
  });

  it("AGENT-08 reads the memory that is available, not merely unused", () => {
    const found = facts({ "proc/meminfo": "MemTotal:  2048 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n" });
    expect(found).toMatchObject({ memory_bytes: 2048 * 1024, memory_free_bytes: 1024 * 1024 });
  });

  it.for([
    ["an NVIDIA data centre card", "0x10de", "0x030200", ["nvidia"]],
    ["an NVIDIA display card", "0x10de", "0x030000", ["nvidia"]],
    ["its sound function", "0x10de", "0x040300", []],
    ["an AMD display card", "0x1002", "0x038000", ["amd"]],
    ["an AMD accelerator without display", "0x1002", "0x120000", ["amd"]],
    ["an AMD bridge", "0x1002", "0x060400", []],
    ["the display in an Intel processor", "0x8086", "0x030000", []],
    ["an Intel compute card", "0x8086", "0x030200", ["intel"]],
    ["the display of a virtual machine", "0x1234", "0x030000", []],
  ] as const)("AGENT-08 accelerators: %s", ([, vendor, type, expected]) => {
    const { accelerators } = facts(device("0000:01:00.0", vendor, type));
    expect(accelerators.map((one) => one.vendor)).toEqual(expected);
  });

  it("AGENT-08 names an accelerator as its driver does, in the order of the bus", () => {
    const { accelerators } = facts({
      ...device("0000:41:00.0", "0x10de", "0x030200"),
      "proc/driver/nvidia/gpus/0000:41:00.0/information": "Model: \t\t NVIDIA H100 PCIe\nIRQ: 24\n",
      ...device("0000:21:00.0", "0x1002", "0x120000", "0x74a1"),
      "sys/bus/pci/devices/0000:21:00.0/product_name": "AMD Instinct MI300X\n",
      ...device("0000:61:00.0", "0x10de", "0x030200", "0x2331"),
    });
    expect(accelerators.map(({ address, model }) => [address, model])).toEqual([
      ["0000:21:00.0", "AMD Instinct MI300X"],
      ["0000:41:00.0", "NVIDIA H100 PCIe"],
      ["0000:61:00.0", "0x2331"],
    ]);
  });

  it.for([
    [0, ["useradd", "userdel"], ["own_account", "os_users"]],
    [0, ["useradd"], ["own_account"]],
    [0, [], ["own_account"]],
    [1000, ["useradd", "userdel"], ["own_account"]],
  ] as const)("AGENT-08 capabilities of user %d with %j", ([euid, commands, expected]) => {
    const files = Object.fromEntries(commands.map((name) => [`usr/sbin/${name}`, ""]));
    expect(facts(files, { euid }).capabilities).toEqual(expected);
  });

  it("AGENT-08 bounds what it reports", () => {
    const found = facts({ "etc/os-release": `ID=${"x".repeat(5000)}\n` }, { advertisedAddress: "a\0b" });
    expect(HostFacts.parse(found).os.flavour).toHaveLength(200);
    expect(found.advertised_address).toBe("ab");
  });
});
