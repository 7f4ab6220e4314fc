// A host of a lab: a network, mounts and a name of its own, held by a process that sleeps. What runs on it
// enters these. When the holder ends, and whatever else runs there, the host is gone: nothing else keeps it.

import { execFile, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export type Host = {
  name: string;
  /** Words to put before a command that is to run on it. */
  enter: readonly string[];
  /** Of the process that holds its namespaces. */
  pid: number;
  /** Runs a command to its end there; returns its output, and throws with its error output. */
  run(command: string, ...args: string[]): Promise<string>;
  /** Runs `ip -batch` there. */
  ip(...lines: string[]): Promise<void>;
  /** Runs `nft -f` there. */
  nft(ruleset: string): Promise<void>;
};

export type HostOptions = {
  name: string;
  /** Where its own /etc/resolv.conf and /etc/hosts are kept. */
  directory: string;
  nameServer?: string;
  names?: Record<string, string>;
};

/** With a private /etc/resolv.conf, and without any of the machine's names. */
const becomeHost = `
set -e
printf %s "$1" > /proc/sys/kernel/hostname
ip link set lo up
mount --bind "$2/resolv.conf" /etc/resolv.conf
mount --bind "$2/hosts" /etc/hosts
echo ready
exec sleep infinity`;

export async function openHost({ name, directory, nameServer, names = {} }: HostOptions): Promise<Host> {
  mkdirSync(directory, { recursive: true });
  // Two short tries: a host whose name server is silent should say so within a scenario's time.
  const resolver = nameServer ? `nameserver ${nameServer}\noptions timeout:2 attempts:2\n` : "";
  writeFileSync(join(directory, "resolv.conf"), resolver);
  const own = ["127.0.0.1 localhost", ...Object.entries(names).map(([host, address]) => `${address} ${host}`)];
  writeFileSync(join(directory, "hosts"), `${own.join("\n")}\n`);
  const unshare = ["--net", "--mount", "--uts", "--propagation", "private", "--"];
  const holder = spawn("unshare", [...unshare, "sh", "-c", becomeHost, "sh", name, directory], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    let complaint = "";
    holder.stderr.on("data", (text: Buffer) => (complaint += text));
    holder.stdout.once("data", () => resolve());
    holder.once("error", reject);
    holder.once("close", () => reject(new Error(`the host ${name} could not be made: ${complaint.trim()}`)));
  });
  const pid = holder.pid ?? 0;
  const enter = ["nsenter", "--target", String(pid), "--net", "--mount", "--uts", "--"];
  const run = async (...words: string[]) => {
    const [program = "", ...args] = [...enter, ...words];
    return (await execute(program, args)).stdout;
  };
  const withInput = (words: string[], input: string) =>
    new Promise<void>((resolve, reject) => {
      const [program = "", ...args] = [...enter, ...words];
      const child = execFile(program, args, (error) => (error ? reject(error) : resolve()));
      child.stdin?.end(input);
    });
  return {
    name,
    pid,
    enter,
    run,
    ip: (...lines) => withInput(["ip", "-batch", "-"], `${lines.join("\n")}\n`),
    nft: (ruleset) => withInput(["nft", "-f", "-"], ruleset),
  };
}
