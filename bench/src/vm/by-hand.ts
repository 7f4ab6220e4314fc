// The same VM by hand, as an expert would script it: overlay, seed, QEMU with the same arguments in a network namespace, and a
// reader at the guest's channel. From the first command to the guest's callback.

import { execFile, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { sizeOfProfile } from "@holdfast/contracts/vm/profiles";
import { qemuArguments, systemOf } from "@holdfast/node-agent/drivers/qemu/command";
import { filesOf } from "@holdfast/node-agent/vms/launch-phases";
import { seedImage } from "@holdfast/node-agent/vms/seed";
import { PROFILE } from "./ours.ts";

const execute = promisify(execFile);
const RETRY_MS = 20;

export type VmByHand = { end(): Promise<void> };

/** Resolves when the guest has presented its secret and has taken another one. */
export async function bootByHand(directory: string, base: string): Promise<VmByHand> {
  const system = systemOf(process.arch);
  if (!system) throw new Error(`no VM runs on ${process.arch}`);
  const tag = { hostTag: "000000000000", vmId: randomUUID() };
  const files = filesOf({ cloudInit: directory, overlays: directory }, tag);
  const { vcpus, memory_mib: memoryMib, disk_gib: diskGib } = sizeOfProfile[PROFILE];
  mkdirSync(files.directory);
  const secret = randomBytes(32).toString("base64url");
  const wanted = { vm_id: tag.vmId, hostname: "by-hand", user_data: "#cloud-config\n{}\n" };
  writeFileSync(files.seed, seedImage(wanted, secret));
  const overlay = ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, files.overlay, `${diskGib}G`];
  await execute("qemu-img", overlay);
  const vm = { ...tag, files, accelerator: "tcg" as const, vcpus, memoryMib, serialBytes: 0 };
  const machine = { ...vm, mac: "52:54:00:00:00:01", network: { backend: "user" as const, uplink: false } };
  const options = qemuArguments(machine, { machine: system.machine, asRoot: process.geteuid?.() === 0 });
  const log = openSync(files.serialLog, "w");
  const child = spawn("unshare", ["--net", "--", system.program, ...options], {
    ...{ cwd: files.directory, stdio: ["ignore", log, log] },
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const end = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(files.directory, { recursive: true });
    rmSync(files.overlay);
  };
  try {
    await callback(files.channel, secret, () => child.exitCode !== null);
    return { end };
  } catch (error) {
    const console = readFileSync(files.serialLog, "utf8").slice(-600);
    await end();
    throw new Error(`${(error as Error).message}: ${console}`);
  }
}

async function callback(path: string, secret: string, isGone: () => boolean): Promise<void> {
  const socket = await opened(path, isGone);
  await new Promise<void>((resolve, reject) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (text.includes(`hello ${secret}\n`)) socket.write("welcome another\n");
      text = text.replace(`hello ${secret}\n`, "");
      if (text.includes("ready\n")) resolve();
    });
    socket.once("close", () => reject(new Error("QEMU has ended")));
  });
  socket.destroy();
}

async function opened(path: string, isGone: () => boolean): Promise<Socket> {
  for (;;) {
    try {
      return await new Promise<Socket>((resolve, reject) => {
        const socket = connect(path, () => resolve(socket)).once("error", reject);
      });
    } catch (error) {
      if (isGone()) throw new Error(`QEMU did not start: ${(error as Error).message}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
