import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSettings } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { detectVmHost } from "./detect.ts";
import { vmSettings } from "./settings.ts";

function rootWith(...programs: string[]): string {
  const root = scratchDirectory();
  mkdirSync(join(root, "usr/bin"), { recursive: true });
  for (const name of programs) {
    writeFileSync(join(root, "usr/bin", name), "");
    chmodSync(join(root, "usr/bin", name), 0o755);
  }
  return root;
}
const host = { root: rootWith("qemu-system-x86_64", "qemu-img"), arch: "x64", euid: 0, capabilities: ~0n };
const detect = (env: Record<string, string>, on: object = {}) =>
  detectVmHost(readSettings(vmSettings, env), { ...host, ...on });

describe("a host runs VMs", () => {
  it("AGENT-08 only if its owner wants it", () => {
    expect(detect({})).toEqual({});
    expect(detect({ HOLDFAST_VM_HOST: "off", NODE_AGENT_NETWORK_BACKEND: "user" })).toEqual({});
    expect(detect({ HOLDFAST_VM_HOST: "on" }).setup).toMatchObject({ network: { backend: "user" } });
  });

  it("VM-03 with the variables of an earlier installation", () => {
    const { setup } = detect({
      NODE_AGENT_BASE_IMAGE_DIR: "/srv/base",
      NODE_AGENT_CLOUD_INIT_DIR: "/srv/ci",
      NODE_AGENT_NETWORK_BACKEND: "bridge",
      NODE_AGENT_NETWORK_INTERFACE: "br0",
    });
    expect(setup).toMatchObject({
      directories: { images: "/srv/base", cloudInit: "/srv/ci", overlays: "/var/lib/jenkins-qemu/overlays" },
      network: { backend: "bridge", interface: "br0" },
      accelerator: "auto",
    });
  });

  it("VM-03 on a bridge only with the right to create taps", () => {
    const capabilities = ~(1n << 12n);
    expect(detect({ NODE_AGENT_NETWORK_BACKEND: "bridge" }, { capabilities }).problem).toMatch(
      /lacks CAP_NET_ADMIN/,
    );
    expect(detect({ NODE_AGENT_NETWORK_BACKEND: "user" }, { capabilities }).problem).toBeUndefined();
  });

  it("VM-03 ahead of leases only as its owner lists them", () => {
    expect(detect({ HOLDFAST_VM_HOST: "on" }).setup?.warm).toEqual([]);
    const env = { HOLDFAST_VM_HOST: "on", HOLDFAST_VM_WARM: "debian-12:small=2  tools:tiny=1" };
    expect(detect(env).setup?.warm).toEqual([
      { imageId: "debian-12", profile: "small", count: 2 },
      { imageId: "tools", profile: "tiny", count: 1 },
    ]);
    for (const wrong of [
      "debian-12",
      "debian-12:huge=1",
      "../x:tiny=1",
      "a:tiny=1 a:tiny=2",
      "a:tiny=60 b:tiny=5",
    ])
      expect(() => detect({ ...env, HOLDFAST_VM_WARM: wrong }), wrong).toThrow("HOLDFAST_VM_WARM");
  });

  it("VM-03 one at a time on a tap of its own", () => {
    expect(detect({ NODE_AGENT_NETWORK_BACKEND: "tap" }).setup?.mostVms).toBe(1);
  });

  it.for([
    [{ root: rootWith("qemu-img") }, /qemu-system-x86_64 is not installed/],
    [{ root: rootWith("qemu-system-x86_64") }, /qemu-img is not installed/],
    [{ euid: 1000 }, /not root/],
    [{ arch: "riscv64" }, /riscv64/],
    [{ capabilities: ~(1n << 19n) }, /lacks CAP_SYS_PTRACE.*CapabilityBoundingSet=CAP_SYS_PTRACE/],
  ] as const)("AGENT-08 and says what is missing: %o", ([on, problem]) => {
    expect(detect({ HOLDFAST_VM_HOST: "on" }, on)).toEqual({ problem: expect.stringMatching(problem) });
  });
});
