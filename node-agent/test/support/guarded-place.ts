// A VM host under guard: beside it run a VM, a disk, a seed and a tap of somebody else with names like ours, and whatever our VMs
// leave on the machine is found.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { expect, vi } from "vitest";
import { type HostDiff, openHostDiff } from "../../../testkit/host/host-diff.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { launchParams, type VmPlace } from "./vm-host.ts";

export type Guard = {
  /** Paths of what is not ours. */
  foreign: string[];
  /** Of a VM whose traces are followed. */
  params(changes?: Partial<VmLaunch>): VmLaunch;
  look: HostDiff["look"];
  /** What exists now and did not before. */
  left: HostDiff["diff"];
  /** The machine is as it was, and what belongs to others is untouched. */
  expectNothingLeft(after?: string): void;
};

/** For a place whose host has been started once: what belongs to the host itself stays. */
export async function guard(place: VmPlace): Promise<Guard> {
  const foreign = await plantForeign(place);
  const { tag } = JSON.parse(readFileSync(join(place.stateDir, "vm-host.json"), "utf8")) as { tag: string };
  const { cloudInit, overlays } = place.setup.directories;
  // Not the images: tests change them.
  const directories = [place.stateDir, cloudInit, overlays];
  mkdirSync(join(place.stateDir, "phases"), { recursive: true, mode: 0o700 });
  const host = openHostDiff({ marks: [place.root, `holdfast-${tag}`, foreign.tap], directories });
  return {
    foreign: foreign.paths,
    params(changes) {
      const wanted = launchParams(place, changes);
      // A tap has no tag yet right after it was made.
      host.mark(`hf${wanted.vm_id.replaceAll("-", "").slice(-12)}`);
      return wanted;
    },
    look: host.look,
    left: host.diff,
    expectNothingLeft(after) {
      expect(host.diff(), after).toEqual([]);
      foreign.expectUntouched();
    },
  };
}

async function plantForeign({ setup, root }: VmPlace) {
  const { overlays, cloudInit, images } = setup.directories;
  const id = randomUUID();
  const name = `holdfast-000000000000-${id}`;
  const [overlay, seed] = [join(overlays, `${name}.qcow2`), join(cloudInit, randomUUID())];
  const tap = `hf${id.replaceAll("-", "").slice(-12)}`;
  const options = ["-q", "-f", "qcow2", "-F", "qcow2", "-b", join(images, "small.qcow2")];
  execFileSync("qemu-img", ["create", ...options, overlay]);
  mkdirSync(seed);
  writeFileSync(join(seed, "seed.iso"), "a seed");
  execFileSync("ip", ["tuntap", "add", tap, "mode", "tap"]);
  atEnd(() => execFileSync("ip", ["link", "delete", tap]));
  execFileSync("ip", ["link", "set", tap, "alias", name]);
  const qmp = join(root, "foreign.sock");
  const machine = ["-machine", "none", "-nodefaults", "-display", "none", "-S"];
  const disk = ["-drive", `if=none,id=disk,file=${overlay},format=qcow2`];
  const command = ["--net", "--", "qemu-system-x86_64", "-name", name, ...machine, ...disk];
  const vm = spawn("unshare", [...command, "-qmp", `unix:${qmp},server=on,wait=off`], { stdio: "ignore" });
  atEnd(() => vm.kill("SIGKILL"));
  await vi.waitFor(() => expect(existsSync(qmp)).toBe(true), { timeout: 30_000 });
  const content = readFileSync(overlay);
  return {
    tap,
    paths: [overlay, seed],
    expectUntouched() {
      expect(readFileSync(overlay).equals(content)).toBe(true);
      expect(readFileSync(join(seed, "seed.iso"), "utf8")).toBe("a seed");
      expect(vm.exitCode ?? vm.signalCode).toBeNull();
    },
  };
}
