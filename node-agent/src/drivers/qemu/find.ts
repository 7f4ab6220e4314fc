// Finds the processes of VMs by the tag in their arguments.

import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { basename } from "node:path";
import { type ProcessIdentity, readStat, signalIfAlive } from "@holdfast/kit/processes";
import type { VmTag } from "./driver.ts";

const uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";

/** The VM of a tag; undefined: it is no tag of this host. */
export function vmOfTag(hostTag: string, text: string): string | undefined {
  return new RegExp(`^holdfast-${hostTag}-(${uuid})$`).exec(text)?.[1];
}

type Tagged = VmTag & { process: ProcessIdentity; program: string; main: boolean; session: number };

export function taggedProcesses(hostTag: string): Tagged[] {
  return pids().flatMap((pid) => {
    const args = argumentsOf(pid);
    const vmId = args.map((text) => vmOfTag(hostTag, text)).find((found) => found !== undefined);
    const stat = vmId === undefined ? undefined : readStat(pid);
    if (vmId === undefined || !stat || stat.state === "Z") return [];
    const program = basename(args[0] ?? "");
    const main = program.startsWith("qemu-system-");
    return [
      { hostTag, vmId, process: { pid, startTicks: stat.startTicks }, program, main, session: stat.session },
    ];
  });
}

/** With what they started in their sessions. Returns what was found. */
export function killTagged({ hostTag, vmId }: VmTag): ProcessIdentity[] {
  const tagged = taggedProcesses(hostTag).filter((one) => one.vmId === vmId);
  const sessions = new Set(tagged.map(({ session }) => session).filter((session) => session !== ownSession()));
  const beside = pids().flatMap((pid) => {
    const stat = sessions.size === 0 ? undefined : readStat(pid);
    return stat && stat.state !== "Z" && sessions.has(stat.session) ? [{ pid, startTicks: stat.startTicks }] : [];
  });
  const found = [...tagged.map((one) => one.process), ...beside];
  for (const one of found) signalIfAlive(one, "SIGKILL");
  return found;
}

function ownSession(): number | undefined {
  return readStat(process.pid)?.session;
}

function pids(): number[] {
  return readdirSync("/proc").flatMap((name) =>
    /^\d+$/.test(name) && Number(name) !== process.pid ? Number(name) : [],
  );
}

export function hasFileOpen({ pid }: ProcessIdentity, file: { dev: bigint; ino: bigint }): boolean {
  const folder = `/proc/${pid}/fd`;
  return listed(folder).some((name) => {
    try {
      if (!readlinkSync(`${folder}/${name}`).startsWith("/")) return false;
      const { dev, ino } = statSync(`${folder}/${name}`, { bigint: true });
      return dev === file.dev && ino === file.ino;
    } catch {
      return false;
    }
  });
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}
