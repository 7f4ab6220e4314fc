// The phases of a launch, each with its undo. The plan of each names what it makes, and is on disk before anything is made
// (tasks/phases): after a crash anywhere, the record alone is enough to remove all of it.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import type { ProcessIdentity } from "@holdfast/kit/processes";
import { TaskFailed } from "@holdfast/tasks/executor";
import type { Phase } from "@holdfast/tasks/phases/phases";
import { tagOf } from "../drivers/qemu/command.ts";
import type { VmDriver, VmFiles, VmNetwork, VmTag } from "../drivers/qemu/driver.ts";
import { digestOf } from "./handshake.ts";
import type { GuestRecord, VmRecord } from "./record.generated.ts";
import { readProcess } from "./records.ts";
import { blankSeed, seedImage, WARM_PAUSES_AT } from "./seed.ts";

export type LaunchContext = {
  driver: VmDriver;
  directories: { cloudInit: string; overlays: string };
  serialBytes: number;
  /** Only while a VM is launched: an undo needs nothing but the plans. */
  launch?: {
    record: VmRecord;
    wanted: Pick<VmLaunch, "vm_id" | "hostname" | "user_data" | "disk_gib">;
    /** The bridge that the VM's tap becomes a member of, or the tap itself. */
    interface: string | undefined;
    /** Throws a TaskFailed if QEMU runs with another base than the verified one. */
    verifyBase: (process: ProcessIdentity) => void;
  };
};

/** In the directory of a VM; its content is the tag. */
export const TAG_FILE = ".holdfast";

type SeedPlan = VmTag & { directory: string; building: string };
type OverlayPlan = { path: string };
type TapPlan = VmTag & { tap: string | null };
type UplinkPlan = VmTag & { uplink: boolean };

export function filesOf(directories: LaunchContext["directories"], { hostTag, vmId }: VmTag): VmFiles {
  const directory = join(directories.cloudInit, vmId);
  return {
    directory,
    seed: join(directory, "seed.iso"),
    overlay: join(directories.overlays, `${tagOf(hostTag, vmId)}.qcow2`),
    channel: join(directory, "channel.sock"),
    qmp: join(directory, "qmp.sock"),
    serialLog: join(directory, "serial.log"),
    serialInput: join(directory, "serial.in"),
    qemuLog: join(directory, "qemu.log"),
    resolver: join(directory, "resolv.conf"),
    uplinkLog: join(directory, "uplink.log"),
  };
}

export function carriesTag(directory: string, tag: VmTag): boolean {
  return readFileIfPresent(join(directory, TAG_FILE)) === tagOf(tag.hostTag, tag.vmId);
}

// biome-ignore lint/suspicious/noExplicitAny: each phase has a plan of its own form
export const launchPhases: readonly Phase<LaunchContext, any>[] = [
  {
    name: "checking",
    plan: (context) => launchOf(context).record,
    act: async () => {},
    undo: async () => {},
  },
  staged("cloud-init", "vm_cloud_init_failed", {
    name: "cloud_init",
    plan: (context): SeedPlan => {
      const tag = tagIn(context);
      const { directory } = filesOf(context.directories, tag);
      return { ...tag, directory, building: `${directory}.${tagOf(tag.hostTag, "building")}` };
    },
    act: async (context, { directory, building, ...tag }: SeedPlan) =>
      writeSeed(context, { directory, building, ...tag }),
    undo: async (_context, { directory, building, ...tag }: SeedPlan) => {
      rmSync(building, { recursive: true, force: true });
      if (carriesTag(directory, tag)) rmSync(directory, { recursive: true, force: true });
    },
  }),
  staged("overlay", "vm_overlay_failed", {
    name: "overlay",
    plan: (context): OverlayPlan => ({ path: filesOf(context.directories, tagIn(context)).overlay }),
    act: async (context, { path }: OverlayPlan) => {
      const { record, wanted } = launchOf(context);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const bytes = wanted.disk_gib === null ? undefined : wanted.disk_gib * 1024 ** 3;
      await context.driver.createOverlay({ base: record.image.path, path, bytes });
    },
    undo: async ({ driver }, { path }: OverlayPlan) => driver.removeOverlay(path),
  }),
  staged("network", "vm_network_unusable", {
    name: "network",
    plan: (context): TapPlan => {
      const { record } = launchOf(context);
      return { ...tagIn(context), tap: record.network === "bridge" ? tapName(record.vm_id) : null };
    },
    act: async (context, { tap, ...tag }: TapPlan) => {
      const { interface: bridge } = launchOf(context);
      if (tap !== null && bridge !== undefined) await context.driver.createTap({ ...tag, tap, bridge });
    },
    undo: async ({ driver }, { tap, ...tag }: TapPlan) => {
      if (tap !== null) await driver.removeTap({ ...tag, tap });
    },
  }),
  staged("qemu", "vm_qemu_failed", {
    name: "qemu",
    plan: (context): VmTag => tagIn(context),
    act: startProcess,
    undo: async ({ driver }, tag: VmTag) => driver.kill(tag),
  }),
  staged("uplink", "vm_network_unusable", {
    name: "uplink",
    plan: (context): UplinkPlan => ({ ...tagIn(context), uplink: launchOf(context).record.uplink === true }),
    act: async (context, { uplink, ...tag }: UplinkPlan) => {
      if (!uplink) return;
      const files = filesOf(context.directories, tag);
      const process = readProcess(files.directory);
      if (!process) throw new Error("QEMU is gone.");
      await context.driver.connectUplink({ ...tag, process, files });
    },
    undo: async ({ driver }, { uplink, ...tag }: UplinkPlan) => {
      if (uplink) await driver.removeUplink(tag);
    },
  }),
];

const nobody: GuestRecord = {
  ...{ seed_sha256: null, session_sha256: null, connected_at: null, disconnected_at: null },
};
export const newSecret = () => randomBytes(32).toString("base64url");
/** Of a guest that finds this secret in its seed. */
export const guestWith = (secret: string): GuestRecord => ({ ...nobody, seed_sha256: digestOf(secret) });

/** The directory gets its name when it is complete, tag included, so nothing without a tag is ever in its place. */
async function writeSeed(context: LaunchContext, { directory, building, ...tag }: SeedPlan): Promise<void> {
  if (carriesTag(directory, tag)) return;
  if (existsSync(directory)) throw new TaskFailed("vm_exists", `${directory} exists and is not Holdfast's.`);
  rmSync(building, { recursive: true, force: true });
  mkdirSync(building, { recursive: true, mode: 0o700 });
  const { record, wanted } = launchOf(context);
  const secret = newSecret();
  const guest = record.warm ? nobody : guestWith(secret);
  writeFileSync(join(building, TAG_FILE), tagOf(tag.hostTag, tag.vmId), { mode: 0o600 });
  writeFileDurably(join(building, "guest.json"), JSON.stringify(guest), 0o600);
  const seed = record.warm ? blankSeed() : seedImage(wanted, secret);
  writeFileSync(join(building, "seed.iso"), seed, { mode: 0o600 });
  renameSync(building, directory);
}

async function startProcess(context: LaunchContext, tag: VmTag): Promise<void> {
  const { record, verifyBase, interface: tap } = launchOf(context);
  const { driver } = context;
  const files = filesOf(context.directories, tag);
  // Of a run that was cut short: its state is not known.
  await driver.kill(tag);
  rmSync(files.qmp, { force: true });
  rmSync(files.channel, { force: true });
  const process = await driver.start({
    ...{ ...tag, files, serialBytes: context.serialBytes },
    ...{ accelerator: record.accelerator, vcpus: record.vcpus, memoryMib: record.memory_mib },
    mac: macOf(record.vm_id),
    network: networkOf(record, tap),
    pausesAt: record.warm ? WARM_PAUSES_AT : undefined,
  });
  verifyBase(process);
  const text = JSON.stringify({ pid: process.pid, start_ticks: process.startTicks });
  writeFileDurably(join(files.directory, "process.json"), text, 0o600);
}

function networkOf({ network, uplink, vm_id }: VmRecord, tap: string | undefined): VmNetwork {
  if (network === "user") return { backend: "user", uplink: uplink === true };
  return { backend: "tap", tap: network === "bridge" ? tapName(vm_id) : (tap ?? "") };
}

/** At most 15 characters; of the id's random part. */
function tapName(vmId: string): string {
  return `hf${vmId.replaceAll("-", "").slice(-12)}`;
}

/** Locally administered, and the same for every start of a VM. */
function macOf(vmId: string): string {
  const digits = vmId.replaceAll("-", "").slice(-6);
  return `52:54:00:${digits.replace(/(..)(?=.)/g, "$1:")}`;
}

/** An error of the phase becomes the failure of its launch stage. */
function staged<Plan>(stage: string, code: string, phase: Phase<LaunchContext, Plan>): Phase<LaunchContext, Plan> {
  return {
    ...phase,
    act: async (context, plan) => {
      try {
        await phase.act(context, plan);
      } catch (error) {
        if (error instanceof TaskFailed) throw error;
        throw new TaskFailed(code, `Launch stage ${stage} failed: ${(error as Error).message}`);
      }
    },
  };
}

function launchOf({ launch }: LaunchContext): NonNullable<LaunchContext["launch"]> {
  if (!launch) throw new Error("a launch that was cut short is undone, never finished");
  return launch;
}

function tagIn(context: LaunchContext): VmTag {
  const { record } = launchOf(context);
  return { hostTag: record.host_tag, vmId: record.vm_id };
}
