// The serial ports of this host's VMs: where a console finds one, and what was written to it so far. Reading a log changes nothing,
// and holds up neither the guest nor another reader.

import { watch } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type SerialConsole, type SerialOutput, TaskFailed, type Vms } from "@holdfast/tasks/executor";
import { openSerialLog } from "../drivers/pty/serial-log.mjs";
import type { VmFiles } from "../drivers/qemu/driver.ts";
import type { KnownVm } from "./known-vm.ts";

type Reading = Parameters<Vms["serialLog"]>[0];

/** What follows right behind belongs to the same reading: whoever follows a log asks less often. */
const GATHER_MS = 400;
/** Where files cannot be watched. */
const LOOK_MS = 500;

export function serialPorts(host: {
  /** Resolves when the VMs of an earlier agent process are known. */
  ready: Promise<void>;
  vms: ReadonlyMap<string, KnownVm>;
  filesOf: (vmId: string) => VmFiles;
}): Pick<Vms, "console" | "serialLog"> {
  const { ready, vms, filesOf } = host;
  return {
    async console(vmId) {
      await ready;
      return consoleOf(vms.get(vmId), filesOf(vmId));
    },
    async serialLog({ vmId, ...reading }) {
      await ready;
      return readSerial(filesOf(vmId), () => vms.get(vmId)?.state === "running", reading);
    },
  };
}

function consoleOf(vm: KnownVm | undefined, files: VmFiles): SerialConsole {
  if (vm?.state !== "running" || !vm.process)
    throw new TaskFailed("terminal_vm_ended", "No such VM runs on this host.");
  return { directory: files.directory, ...vm.process };
}

/** Undefined: the VM has ended. `isRunning` is asked again and again. */
export async function readSerial(
  { serialLog }: Pick<VmFiles, "serialLog">,
  isRunning: () => boolean,
  { from, most, waitMs, signal }: Omit<Reading, "vmId">,
): Promise<SerialOutput | undefined> {
  if (!isRunning()) return undefined;
  const log = openSerialLog(serialLog, { from: from ?? undefined, most });
  const buffer = Buffer.alloc(most);
  let count = 0;
  const read = () => {
    for (let some = -1; some !== 0 && count < most; count += some) some = log.read(buffer.subarray(count));
    return count > 0;
  };
  try {
    const until = performance.now() + waitMs;
    while (!read() && isRunning() && performance.now() < until)
      await changed(dirname(serialLog), Math.min(LOOK_MS, until - performance.now()), signal);
    if (count > 0 && count < most && waitMs > 0) {
      await sleep(GATHER_MS, undefined, { signal });
      read();
    }
    // A character or an escape sequence may not be complete yet.
    const rest = log.back(unfinished(buffer.subarray(0, count)));
    return { text: plain(buffer.subarray(0, count - rest)), place: log.place(), skipped: log.takeSkipped() };
  } finally {
    log.close();
  }
}

async function changed(directory: string, withinMs: number, signal: AbortSignal): Promise<void> {
  const seen = new AbortController();
  const stop = AbortSignal.any([signal, seen.signal]);
  let watcher: ReturnType<typeof watch> | undefined;
  try {
    watcher = watch(directory, () => seen.abort()).on("error", () => undefined);
  } catch {
    // It is looked at again after that time.
  }
  await sleep(Math.max(0, withinMs), undefined, { signal: stop }).catch(() => undefined);
  watcher?.close();
  signal.throwIfAborted();
}

const ESCAPE = String.fromCharCode(27);
const BELL = String.fromCharCode(7);
const begunEscape = new RegExp(`${ESCAPE}(?:\\[[0-?]*)?$`);
/** Colours and the cursor, titles, and all others. */
const escapes = new RegExp(
  `${ESCAPE}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BELL}${ESCAPE}]*(?:${BELL}|${ESCAPE}\\\\)?|[ -/]*[0-~])`,
  "g",
);

/** Bytes at the end that begin a character or an escape sequence and do not complete it. */
export function unfinished(bytes: Buffer): number {
  const end = bytes.subarray(-32).toString("latin1");
  const begun = begunEscape.exec(end);
  if (begun) return begun[0].length;
  const [lead = ""] = /[\xc0-\xf7][\x80-\xbf]{0,2}$/.exec(end) ?? [];
  const first = lead.charCodeAt(0);
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  return lead.length < length ? lead.length : 0;
}

/** Text that can be shown and stored: a guest may write anything. */
export function plain(bytes: Buffer): string {
  const text = bytes.toString("utf8").replace(escapes, "").replace(/\r+\n/g, "\n");
  return text.replace(/\p{Cc}/gu, (control) => (control === "\n" || control === "\t" ? control : ""));
}
