// Who on this host needs a base image: overlays whose backing file it is, and processes that have it open. Works without the agent, and
// sees what other programs do, too.

import { execFile } from "node:child_process";
import { readdirSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { hasFileOpen } from "../../drivers/qemu/find.ts";

/** One line for each; empty: nothing does. */
export async function referencesTo(image: string, { overlays }: { overlays: string }): Promise<string[]> {
  return [...(await overlaysOn(image, overlays)), ...processesWith(image)];
}

async function overlaysOn(image: string, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of listed(directory).filter((one) => one.endsWith(".qcow2"))) {
    const path = join(directory, name);
    const { stdout } = await promisify(execFile)("qemu-img", ["info", "-U", "--output=json", path]).catch(() => ({
      stdout: "{}",
    }));
    const { "backing-filename": backing } = JSON.parse(stdout) as { "backing-filename"?: string };
    if (backing !== undefined && isSame(resolve(directory, backing), image))
      found.push(`the overlay ${path} is based on it`);
  }
  return found;
}

function processesWith(image: string): string[] {
  const file = statSync(image, { bigint: true });
  return listed("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => hasFileOpen({ pid: Number(pid), startTicks: "" }, file))
    .map((pid) => `process ${pid} has it open`);
}

function isSame(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false;
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
