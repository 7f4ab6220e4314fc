// Settings of a VM host. Most have an alias of the runbook for Jenkins hosts, whose env file the agent's service reads.

import { parseImageUrl } from "@holdfast/contracts/vm/image-sources";
import { vmProfiles } from "@holdfast/contracts/vm/profiles";
import { integer, kinds, oneOf, optional, setting } from "@holdfast/kit/settings";
import type { WarmWish } from "./warm-pool.ts";

const interfaceName = {
  allowed: "the name of a network interface",
  parse: (text: string) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/.test(text) ? text : undefined),
};
const imageSources = {
  allowed: "up to 32 http:// or https:// URLs without credentials and query, separated by spaces",
  parse: (text: string) => {
    const list = text.split(/\s+/).filter((part) => part !== "");
    return list.length <= 32 && list.every((part) => part.length <= 500 && parseImageUrl(part)) ? list : undefined;
  },
};
const MOST_WARM = 64;
const warmVms = {
  allowed: `<image>:<profile>=<count>, separated by spaces, ${MOST_WARM} VMs in all; profiles are ${vmProfiles.join(", ")}`,
  parse: (text: string) => {
    const wishes = text.split(/\s+/).flatMap((part) => (part === "" ? [] : [parseWarm(part)]));
    const known = wishes.filter((wish) => wish !== undefined);
    const isOnce = new Set(known.map(({ imageId, profile }) => `${imageId}:${profile}`)).size === known.length;
    const isFew = known.reduce((sum, { count }) => sum + count, 0) <= MOST_WARM;
    return known.length === wishes.length && isOnce && isFew ? known : undefined;
  },
};
function parseWarm(text: string): WarmWish | undefined {
  const [, imageId = "", name, digits] = /^([a-z0-9][a-z0-9._-]{0,63}):([a-z]+)=([0-9]{1,2})$/.exec(text) ?? [];
  const profile = vmProfiles.find((one) => one === name);
  return profile && { imageId, profile, count: Number(digits) };
}
const ROOT = "/var/lib/jenkins-qemu";

export const vmSettings = {
  vmHost: optional(oneOf("on", "off"), {
    env: "HOLDFAST_VM_HOST",
    help: "`on` lets this host run VMs, if QEMU is installed. Default: on if NODE_AGENT_NETWORK_BACKEND or NODE_AGENT_BASE_IMAGE_DIR is set.",
  }),
  vmImageDir: optional(kinds.path, {
    env: "HOLDFAST_VM_BASE_IMAGE_DIR",
    aliases: ["NODE_AGENT_BASE_IMAGE_DIR"],
    help: `Directory of base images: <id>.qcow2. Default: ${ROOT}/base.`,
  }),
  vmImageSources: setting(imageSources, {
    env: "HOLDFAST_VM_IMAGE_SOURCES",
    default: [] as string[],
    defaultText: "none: nothing is fetched",
    help: "Prefixes of URLs that this host may fetch base images from, such as https://images.example.com/base/. Redirects have to match as well. A digest decides whether a file is used.",
  }),
  vmCloudInitDir: setting(kinds.path, {
    env: "HOLDFAST_VM_CLOUD_INIT_DIR",
    aliases: ["NODE_AGENT_CLOUD_INIT_DIR"],
    default: `${ROOT}/cloud-init`,
    help: "Directory of the VMs' seeds and serial logs: <vm_id>/serial.log.",
  }),
  vmOverlayDir: setting(kinds.path, {
    env: "HOLDFAST_VM_OVERLAY_DIR",
    default: `${ROOT}/overlays`,
    help: "Directory of the VMs' disks. They are removed with their VMs.",
  }),
  vmNetwork: optional(oneOf("user", "bridge", "tap"), {
    env: "HOLDFAST_VM_NETWORK_BACKEND",
    aliases: ["NODE_AGENT_NETWORK_BACKEND"],
    help: "`user` isolates VMs in network namespaces of their own; `bridge` makes each a member of a bridge; `tap` uses one existing tap. Default: user.",
  }),
  vmNetworkInterface: optional(interfaceName, {
    env: "HOLDFAST_VM_NETWORK_INTERFACE",
    aliases: ["NODE_AGENT_NETWORK_INTERFACE"],
    help: "The bridge or tap. Required for `bridge` and `tap`.",
  }),
  vmUplink: setting(oneOf("on", "off"), {
    env: "HOLDFAST_VM_UPLINK",
    default: "on" as const,
    help: "`on` lets VMs on the `user` network reach the networks of this host, but not its loopback; it needs slirp4netns. `off` leaves them without a network.",
  }),
  vmAccelerator: setting(oneOf("auto", "kvm", "nvmm", "tcg"), {
    env: "HOLDFAST_VM_ACCELERATOR",
    default: "auto" as const,
    help: "`auto` selects the first that boots a guest; whatever is set, tcg is used if it boots none.",
  }),
  vmCpus: optional(integer({ min: 1, max: 4096 }), {
    env: "HOLDFAST_VM_CPUS",
    help: "vCPUs that all VMs together may have; may exceed those of the host. Default: as many as the host has.",
  }),
  vmMemoryMib: optional(integer({ min: 64, max: 16_777_216 }), {
    env: "HOLDFAST_VM_MEMORY_MIB",
    help: "Memory that all VMs together may have, in MiB. Default: 80 % of the host's.",
  }),
  vmDiskGib: optional(integer({ min: 1, max: 1_048_576 }), {
    env: "HOLDFAST_VM_DISK_GIB",
    help: "Disk that all VMs together may have, in GiB. Default: 90 % of the file system of the overlay directory.",
  }),
  vmMost: setting(integer({ min: 1, max: 512 }), {
    env: "HOLDFAST_VM_MOST",
    default: 64,
    help: "Highest number of VMs at a time.",
  }),
  vmWarm: setting(warmVms, {
    env: "HOLDFAST_VM_WARM",
    default: [] as WarmWish[],
    defaultText: "none",
    help: "VMs that are booted ahead of leases and wait, paused: debian-12:small=2 keeps two of that image and profile. They use memory, and give it to leases that need it.",
  }),
  vmSerialKib: setting(integer({ min: 64, max: 65_536 }), {
    env: "HOLDFAST_VM_SERIAL_LOG_KIB",
    default: 1024,
    help: "Size of a VM's serial log, in KiB. Older output is dropped.",
  }),
};

export const DEFAULT_IMAGE_DIR = `${ROOT}/base`;
