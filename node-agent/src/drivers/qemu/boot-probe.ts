// Finds out whether a guest really runs with an accelerator: a boot sector whose code ends QEMU with an exit code of its own. A /dev/kvm that opens proves nothing: on some machines it opens, and guests never execute an instruction.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { VmAccelerator } from "@holdfast/contracts/node/vm-host";
import { acceleratorArguments, systemOf } from "./command.ts";

const PORT = 0xf4;
const VALUE = 0x2a;
/** What QEMU's device for debugging makes of it. */
const EXIT_CODE = (VALUE << 1) | 1;

/** The firmware does not boot from a disk without at least one cylinder. */
const DISK_BYTES = 1024 * 1024;

/** mov al, VALUE; out PORT, al; hlt; jmp back to the hlt. */
function bootDisk(): Buffer {
  const disk = Buffer.alloc(DISK_BYTES);
  disk.set([0xb0, VALUE, 0xe6, PORT, 0xf4, 0xeb, 0xfd]);
  disk.set([0x55, 0xaa], 510);
  return disk;
}

/** Firmware and sector take half a second; a machine under load gets plenty. */
const WITHIN_MS = 15_000;

export type Probe = { usable: boolean; detail: string };

export async function bootProbe(
  accelerator: VmAccelerator,
  options: { arch?: string; withinMs?: number; environment: NodeJS.ProcessEnv },
): Promise<Probe> {
  const arch = options.arch ?? process.arch;
  const system = systemOf(arch);
  if (!system) return { usable: false, detail: `no VM can run on ${arch}` };
  // The sector is code for x86 only.
  if (arch !== "x64")
    return accelerator === "tcg"
      ? { usable: true, detail: "not probed: it needs nothing of the host" }
      : { usable: false, detail: `there is no boot probe for ${arch} yet` };
  const directory = mkdtempSync(join(tmpdir(), "holdfast-probe-"));
  const disk = join(directory, "disk");
  try {
    writeFileSync(disk, bootDisk());
    const args = [
      ...["-machine", system.machine, ...acceleratorArguments(accelerator), "-m", "16"],
      ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
      ...["-drive", `if=none,id=disk,file=${disk},format=raw,readonly=on`, "-device", "virtio-blk-pci,drive=disk"],
      ...["-device", `isa-debug-exit,iobase=0x${PORT.toString(16)},iosize=1`],
    ];
    return await outcome(system.program, args, options.withinMs ?? WITHIN_MS, options.environment);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function outcome(program: string, args: string[], withinMs: number, env: NodeJS.ProcessEnv): Promise<Probe> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env, cwd: "/" });
    let said = "";
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill("SIGKILL");
    }, withinMs);
    child.stderr.on("data", (bytes: Buffer) => {
      said = `${said}${bytes}`.slice(0, 300);
    });
    child.once("error", (error) => {
      clearTimeout(timer);
      resolve({ usable: false, detail: error.message });
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (code === EXIT_CODE) resolve({ usable: true, detail: "a guest booted" });
      else if (late) resolve({ usable: false, detail: `a guest did not boot within ${withinMs / 1000} s` });
      else resolve({ usable: false, detail: said.trim() || `QEMU ended with ${signal ?? code}` });
    });
  });
}
