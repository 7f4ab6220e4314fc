// Commands in guests. A guest that is asked to run one reports its output and its end over the channel:
//   guest  out <id> <base64>
//   guest  exit <id> <code>
// Both are kept in the directory of the VM, so they outlive the agent and go with the VM.

import {
  appendFileSync,
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { VmCommand, VmOutput, VmOutputQuery } from "@holdfast/contracts/node/vm-host";
import { MOST_VM_OUTPUT } from "@holdfast/contracts/node/vm-host-capability";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { TaskFailed } from "@holdfast/tasks/executor";
import type { KnownVm } from "./known-vm.ts";

/** Of one command; the rest is dropped. */
const MOST_KEPT = 16 * 1024 ** 2;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const outputFile = (directory: string, id: string) => join(directory, `command-${id}.out`);
const exitFile = (directory: string, id: string) => join(directory, `command-${id}.exit`);

/** Throws a TaskFailed. `directory`: of the VM. */
export function startCommand(vm: KnownVm, directory: string, { command_id: id, command }: VmCommand): void {
  if (vm.state !== "running") throw gone(vm);
  if (existsSync(outputFile(directory, id))) return;
  if (vm.guest.connected_at === null || vm.guest.disconnected_at !== null)
    throw new TaskFailed("vm_guest_not_connected");
  // Before it is sent: whatever happens then, it is not started a second time.
  writeFileSync(outputFile(directory, id), "", { mode: 0o600, flag: "wx" });
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  if (vm.watch?.send(`run ${id} ${Buffer.from(line).toString("base64")}`)) return;
  rmSync(outputFile(directory, id));
  throw new TaskFailed("vm_guest_not_connected");
}

/** A line of the guest: it may send whatever it likes. Only commands that were started are written. */
export function takeLine(directory: string, line: string): void {
  const [word, id = "", value = ""] = line.split(" ");
  if (!ID.test(id) || !existsSync(outputFile(directory, id)) || existsSync(exitFile(directory, id))) return;
  if (word === "exit") {
    const code = Number(value);
    const known = Number.isInteger(code) && code >= 0 && code <= 255;
    writeFileDurably(exitFile(directory, id), String(known ? code : 255), 0o600);
    return;
  }
  const bytes = Buffer.from(value, "base64");
  const room = MOST_KEPT - statSync(outputFile(directory, id)).size;
  if (room > 0) appendFileSync(outputFile(directory, id), bytes.subarray(0, room));
}

/** Undefined: there is nothing yet that the caller does not have. */
function readOutput(vm: KnownVm, directory: string, query: VmOutputQuery): VmOutput | undefined {
  if (vm.state !== "running") throw gone(vm);
  const { command_id: id, offset } = query;
  if (!existsSync(outputFile(directory, id))) throw new TaskFailed("vm_command_unknown");
  const exit = readFileIfPresent(exitFile(directory, id));
  const { bytes, size } = piece(outputFile(directory, id), offset);
  const isLast = offset + bytes.length >= size;
  if (bytes.length === 0 && exit === undefined) return undefined;
  return {
    output: bytes.toString("base64"),
    offset: offset + bytes.length,
    exit_code: exit !== undefined && isLast ? Number(exit) : null,
    cut: size >= MOST_KEPT,
  };
}

function gone({ end, tail }: KnownVm): TaskFailed {
  return new TaskFailed(
    "vm_gone",
    `The VM has ended: ${end}. The end of its serial console:\n${tail.slice(-1000)}`,
  );
}

function piece(path: string, offset: number): { bytes: Buffer; size: number } {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.max(0, Math.min(MOST_VM_OUTPUT, size - offset)));
    const read = bytes.length === 0 ? 0 : readSync(file, bytes, 0, bytes.length, offset);
    return { bytes: bytes.subarray(0, read), size };
  } finally {
    closeSync(file);
  }
}

/** Resolves with output, or with nothing new when the time is over. */
export async function awaitOutput(
  vm: KnownVm,
  directory: string,
  { query, signal }: { query: VmOutputQuery; signal: AbortSignal },
): Promise<VmOutput> {
  const nothing: VmOutput = { output: "", offset: query.offset, exit_code: null, cut: false };
  const over = AbortSignal.any([signal, AbortSignal.timeout(query.wait_seconds * 1000)]);
  for (;;) {
    // Before it is read: what comes in between is seen.
    const more = Promise.withResolvers<void>();
    vm.listeners.add(more.resolve);
    over.addEventListener("abort", () => more.resolve(), { once: true });
    try {
      const found = readOutput(vm, directory, query);
      if (found) return found;
      if (over.aborted) return nothing;
      await more.promise;
    } finally {
      vm.listeners.delete(more.resolve);
    }
  }
}
