// Finds what is on the host and belongs to no VM of this agent. Only what carries the agent's tag is ever removed; whatever
// else lies in the same directories is listed and kept.

import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { VmStray } from "@holdfast/contracts/node/vm-host";
import type { VmDriver, VmTag } from "../drivers/qemu/driver.ts";
import { vmOfTag } from "../drivers/qemu/find.ts";
import { carriesTag, type LaunchContext, TAG_FILE } from "./launch-phases.ts";

type Found = Pick<VmStray, "kind" | "name" | "vm_id"> & {
  /** Undefined: it does not carry this agent's tag. */
  remove?: (() => Promise<void>) | undefined;
};

const MOST = 500;

/** `known`: VMs of this agent, in whatever state: their records remove what is theirs. */
export async function findStrays(options: {
  driver: VmDriver;
  directories: LaunchContext["directories"];
  hostTag: string;
  known: ReadonlySet<string>;
  remove: boolean;
}): Promise<VmStray[]> {
  const found = [...processes(options), ...overlays(options), ...seeds(options), ...(await taps(options))].slice(
    0,
    MOST,
  );
  const strays: VmStray[] = [];
  for (const { remove, ...stray } of found) strays.push({ ...stray, ...(await dealWith(remove, options.remove)) });
  return strays;
}

async function dealWith(remove: Found["remove"], wanted: boolean): Promise<Pick<VmStray, "action" | "why">> {
  if (!remove) return { action: "kept", why: "it does not carry this agent's tag" };
  if (!wanted) return { action: "would_remove", why: "it carries this agent's tag, and no VM has it" };
  try {
    await remove();
    return { action: "removed", why: "it carried this agent's tag, and no VM had it" };
  } catch (error) {
    return { action: "kept", why: `it could not be removed: ${(error as Error).message}`.slice(0, 400) };
  }
}

type Options = Parameters<typeof findStrays>[0];

function processes({ driver, hostTag, known }: Options): Found[] {
  return driver
    .processes(hostTag)
    .filter(({ vmId }) => !known.has(vmId))
    .map(({ vmId, process }) => ({
      ...{ kind: "process", name: String(process.pid), vm_id: vmId },
      remove: () => driver.kill({ hostTag, vmId }),
    }));
}

function overlays({ driver, directories, hostTag, known }: Options): Found[] {
  return list(directories.overlays).flatMap((file): Found[] => {
    const path = join(directories.overlays, file);
    const vmId = vmOfTag(hostTag, file.replace(/[.]qcow2$/, ""));
    if (vmId === undefined) return [{ kind: "overlay", name: path, vm_id: null }];
    if (known.has(vmId)) return [];
    return [{ kind: "overlay", name: path, vm_id: vmId, remove: () => driver.removeOverlay(path) }];
  });
}

function seeds({ directories, hostTag, known }: Options): Found[] {
  return list(directories.cloudInit).flatMap((name): Found[] => {
    const path = join(directories.cloudInit, name);
    const vmId = vmOfDirectory(hostTag, name);
    if (vmId !== undefined && known.has(vmId)) return [];
    const ours = vmId !== undefined && (name !== vmId || carriesTag(path, { hostTag, vmId }));
    if (!ours && isPlainFile(path)) return [{ kind: "seed", name: path, vm_id: null }];
    const remove = ours ? async () => rmSync(path, { recursive: true, force: true }) : undefined;
    return [{ kind: "seed", name: path, vm_id: ours ? vmId : null, remove }];
  });
}

/** Of a complete one, which is named as its VM, or of one that was being written. */
function vmOfDirectory(hostTag: string, name: string): string | undefined {
  const [id = "", rest] = [name.slice(0, 36), name.slice(36)];
  if (rest !== "" && rest !== `.holdfast-${hostTag}-building`) return undefined;
  return vmOfTag(hostTag, `holdfast-${hostTag}-${id}`);
}

async function taps({ driver, hostTag, known }: Options): Promise<Found[]> {
  const found: (VmTag & { tap: string })[] = await driver.taps(hostTag);
  return found
    .filter(({ vmId }) => !known.has(vmId))
    .map(({ vmId, tap }) => ({
      ...{ kind: "tap", name: tap, vm_id: vmId },
      remove: () => driver.removeTap({ hostTag, vmId, tap }),
    }));
}

function isPlainFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => name !== TAG_FILE);
  } catch {
    return [];
  }
}
