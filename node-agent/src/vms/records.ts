// Reads and writes what the agent keeps about VMs on disk. Whatever cannot be read counts as absent: the phase record, which
// is strict, decides what exists.

import { randomBytes } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import type { ProcessIdentity } from "@holdfast/kit/processes";
import type { PhaseRecord } from "@holdfast/tasks/phases/phases";
import { GuestRecord, HostTag, VmProcessRecord, VmRecord } from "./record.generated.ts";

const SERIAL_TAIL = 8192;

/** Made once for a state directory. */
export function hostTagIn(stateDir: string): string {
  const path = join(stateDir, "vm-host.json");
  const text = readFileIfPresent(path);
  // One that cannot be read is an error: another tag would make strangers of all VMs of this host.
  if (text !== undefined) return HostTag.parse(JSON.parse(text)).tag;
  const tag = randomBytes(6).toString("hex");
  writeFileDurably(path, `${JSON.stringify({ tag })}\n`, 0o600);
  return tag;
}

/** The plan of the first phase. */
export function readVmRecord(journal: PhaseRecord | undefined): VmRecord | undefined {
  const plan = journal?.phases.find(({ name }) => name === "checking")?.plan;
  const checked = VmRecord.safeParse(plan);
  return checked.success ? checked.data : undefined;
}

export function readGuest(directory: string): GuestRecord | undefined {
  return parsed(join(directory, "guest.json"), GuestRecord);
}

export function writeGuest(directory: string, record: GuestRecord): void {
  writeFileDurably(join(directory, "guest.json"), JSON.stringify(record), 0o600);
}

export function readProcess(directory: string): ProcessIdentity | undefined {
  const found = parsed(join(directory, "process.json"), VmProcessRecord);
  return found && { pid: found.pid, startTicks: found.start_ticks };
}

function parsed<Value>(path: string, form: { parse(value: unknown): Value }): Value | undefined {
  try {
    const text = readFileIfPresent(path);
    return text === undefined ? undefined : form.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The end of a VM's serial console. Its guest wrote it: any bytes may be in it. */
export function serialTail(path: string): string {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return "";
  }
  try {
    const { size } = fstatSync(file);
    const buffer = Buffer.alloc(Math.min(size, SERIAL_TAIL));
    readSync(file, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString("latin1").replace(/[^\x20-\x7e\n\t]/g, "");
  } finally {
    closeSync(file);
  }
}
