// Whether this host runs VMs: its owner allows it, QEMU is installed, and the agent is root, because only root can give each VM
// a network namespace or a tap. Nothing is started for it.

import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { readFileIfPresent } from "@holdfast/kit/files";
import type { Values } from "@holdfast/kit/settings";
import { programDirectories, type VmHostSetup } from "./host-setup.ts";
import { DEFAULT_IMAGE_DIR, type vmSettings } from "./settings.ts";

export type VmSettings = Values<typeof vmSettings>;

const programs: Readonly<Record<string, string>> = { x64: "qemu-system-x86_64", arm64: "qemu-system-aarch64" };

/** `problem`: the owner wants VMs, and they cannot run. */
export type DetectedVmHost = { setup?: Omit<VmHostSetup, "qemu"> & { qemuPath: string }; problem?: string };

export function detectVmHost(
  settings: VmSettings,
  host: { root?: string; arch?: string; euid?: number; capabilities?: bigint } = {},
): DetectedVmHost {
  const implied = settings.vmNetwork !== undefined || settings.vmImageDir !== undefined;
  const wanted = settings.vmHost === undefined ? implied : settings.vmHost === "on";
  if (!wanted) return {};
  const { root = "/", arch = process.arch, euid = process.geteuid?.() ?? -1 } = host;
  const name = programs[arch];
  if (!name) return { problem: `No VM can run on ${arch}.` };
  const qemuPath = find(root, name);
  if (!qemuPath || !find(root, "qemu-img"))
    return {
      problem: `${qemuPath ? "qemu-img" : name} is not installed. On Debian: apt-get install qemu-system-x86 qemu-utils slirp4netns`,
    };
  if (euid !== 0) return { problem: "The agent is not root, which VMs need for their networks." };
  const missing = missingCapability(settings.vmNetwork, host.capabilities ?? ownCapabilities());
  if (missing)
    return {
      problem: `The agent lacks ${missing}, which VMs need here. Under systemd, run: ${addCapabilities}`,
    };
  return {
    setup: {
      qemuPath,
      directories: {
        images: settings.vmImageDir ?? DEFAULT_IMAGE_DIR,
        cloudInit: settings.vmCloudInitDir,
        overlays: settings.vmOverlayDir,
      },
      network: {
        backend: settings.vmNetwork ?? "user",
        interface: settings.vmNetworkInterface,
        uplink: settings.vmUplink === "on",
      },
      accelerator: settings.vmAccelerator,
      limits: {
        vcpus: settings.vmCpus,
        memoryMib: settings.vmMemoryMib,
        diskMib: settings.vmDiskGib === undefined ? undefined : settings.vmDiskGib * 1024,
      },
      mostVms: settings.vmNetwork === "tap" ? 1 : settings.vmMost,
      serialBytes: settings.vmSerialKib * 1024,
      warm: settings.vmWarm,
      imageSources: settings.vmImageSources,
    },
  };
}

/** Most nodes run no VMs, so the shipped unit lacks both. */
const DROP_INS = "/etc/systemd/system/holdfast-agent.service.d";
const addCapabilities = [
  `mkdir -p ${DROP_INS}`,
  `printf '[Service]\\nCapabilityBoundingSet=CAP_SYS_PTRACE CAP_NET_ADMIN\\n' > ${DROP_INS}/vm-host.conf`,
  "systemctl daemon-reload && systemctl restart holdfast-agent",
].join(" && ");
const numbers = { CAP_NET_ADMIN: 12n, CAP_SYS_PTRACE: 19n };

/** Root in a service may have fewer than all. */
function missingCapability(network: string | undefined, has: bigint): keyof typeof numbers | undefined {
  // To see which files QEMU has open, after it has become nobody.
  const needed = ["CAP_SYS_PTRACE", ...(network === "bridge" ? (["CAP_NET_ADMIN"] as const) : [])] as const;
  return needed.find((name) => ((has >> numbers[name]) & 1n) === 0n);
}

/** All of them where the system does not know of any. */
function ownCapabilities(): bigint {
  const status = readFileIfPresent("/proc/self/status") ?? "";
  return BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "ffffffffff"}`);
}

function find(root: string, name: string): string | undefined {
  return programDirectories
    .map((directory) => join(root, directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
