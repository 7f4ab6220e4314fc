// How the owner of a host has set it up for VMs, and what of it is detected.

import type { VmAccelerator, VmNetworkBackend } from "@holdfast/contracts/node/vm-host";
import type { VmDriver } from "../drivers/qemu/driver.ts";
import type { Log } from "../log.ts";
import type { CapacityLimits } from "./capacity.ts";
import type { WarmWish } from "./warm-pool.ts";

/** Where programs are looked for, relative to the root of the host. */
export const programDirectories = ["usr/local/bin", "usr/bin", "usr/local/sbin", "usr/sbin", "bin"];

export type VmHostSetup = {
  directories: { images: string; cloudInit: string; overlays: string };
  network: {
    backend: VmNetworkBackend;
    interface: string | undefined;
    /** Whether VMs on the `user` network reach the networks of the host. */
    uplink: boolean;
  };
  accelerator: VmAccelerator | "auto";
  limits: CapacityLimits;
  mostVms: number;
  serialBytes: number;
  /** Which VMs are booted ahead of leases. */
  warm: readonly WarmWish[];
  /** Prefixes of URLs that images may be fetched from. */
  imageSources: readonly string[];
  qemu: { version: string; path: string };
};

export type VmHostOptions = {
  driver: VmDriver;
  setup: VmHostSetup;
  stateDir: string;
  bootId: string;
  /** Of the operating system. */
  family: string;
  /** Takes the user data of a VM from the control plane; null: it has none for this host. */
  takeUserData: (vmId: string) => Promise<string | null>;
  /** Called when the report has changed. */
  onChange: () => void;
  log: Log;
  /** Seconds since the boot of the host. */
  now: () => number;
};

/** `selected`: null: no guest boots at all. */
export type ProbedAccelerators = {
  selected: VmAccelerator | null;
  probed: { name: VmAccelerator; usable: boolean; detail: string }[];
};

/** The best one that boots a guest. `tcg` is the last resort, and is probed too: it shows that QEMU works at all. */
export async function probeAccelerators(
  driver: Pick<VmDriver, "probe">,
  wanted: VmAccelerator | "auto",
  family: string,
): Promise<ProbedAccelerators> {
  const ofFamily: VmAccelerator[] = family === "dragonfly" ? ["nvmm"] : ["kvm"];
  const candidates: VmAccelerator[] =
    wanted === "auto" ? [...ofFamily, "tcg"] : [...new Set([wanted, "tcg" as const])];
  const probed: ProbedAccelerators["probed"] = [];
  for (const name of candidates) {
    probed.push({ name, ...(await driver.probe(name)) });
    if (probed.at(-1)?.usable) break;
  }
  return { selected: probed.find(({ usable }) => usable)?.name ?? null, probed };
}

/** Why no VM can be connected as the owner wants; undefined: it can. */
export function networkProblem(
  { backend, interface: name, uplink }: VmHostSetup["network"],
  exists: (path: string) => boolean,
): string | undefined {
  if (backend === "user")
    return !uplink || programDirectories.some((directory) => exists(`/${directory}/slirp4netns`))
      ? undefined
      : "slirp4netns is not installed, so no guest reaches a network. On Debian: apt-get install slirp4netns. For VMs without a network: HOLDFAST_VM_UPLINK=off";
  if (name === undefined)
    return `NODE_AGENT_NETWORK_BACKEND is ${backend}, which needs NODE_AGENT_NETWORK_INTERFACE.`;
  const folder = `/sys/class/net/${name}`;
  if (!exists(folder)) return `The interface ${name} does not exist on this host.`;
  if (backend === "bridge" && !exists(`${folder}/bridge`)) return `${name} is not a bridge.`;
  if (backend === "tap" && !exists(`${folder}/tun_flags`)) return `${name} is not a tap.`;
  return undefined;
}
