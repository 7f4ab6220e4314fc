// The VMs of a real host, as the rest of the agent sees them. Loaded only where the owner wants VMs: other agents have no
// memory to spare for them.

import { execFile } from "node:child_process";
import { uptime } from "node:os";
import { promisify } from "node:util";
import { qemuDriver } from "../drivers/qemu/qemu-driver.ts";
import type { DetectedVmHost } from "./detect.ts";
import type { VmHostOptions } from "./host-setup.ts";
import { createVmHost, type VmHost } from "./vms.ts";

type Setup = NonNullable<DetectedVmHost["setup"]>;

/** Undefined: the state directory cannot be used. */
export async function openVmHost(
  { qemuPath, ...setup }: Setup,
  options: Omit<VmHostOptions, "driver" | "setup" | "now">,
): Promise<VmHost | undefined> {
  try {
    const qemu = { version: await versionOf(qemuPath), path: qemuPath };
    return createVmHost({ ...{ ...options, driver: qemuDriver, now: uptime }, setup: { ...setup, qemu } });
  } catch (error) {
    options.log.error("VMs cannot run here", { error: (error as Error).message });
    return undefined;
  }
}

async function versionOf(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: 10_000 }).catch(() => ({
    stdout: "",
  }));
  return /version (\S+)/.exec(stdout)?.[1] ?? "unknown";
}
