// The way out of a VM's network namespace: slirp4netns on the side of the host, which passes on what arrives at an interface
// in the namespace. The guest never reaches that interface with frames of its own: QEMU's user network ends them, and opens
// sockets inside the namespace instead. So a guest that sends to 127.0.0.1 reaches the namespace's loopback, which is empty.
// slirp4netns alone would pass such a packet to the host's (measured: docs/adr/0053-guest-networks.md).

import { readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { allEnded, isAlive, type ProcessIdentity, signalIfAlive } from "@holdfast/kit/processes";
import { tagOf } from "./command.ts";
import type { VmFiles, VmTag } from "./driver.ts";
import { taggedProcesses } from "./find.ts";

const PROGRAM = "slirp4netns";
const INTERFACE = "uplink";
/** For benchmarks of networks (RFC 2544): no address of a real network is hidden by it. */
const NETWORK = "198.18.0.0/24";
/** The third of it: slirp4netns passes DNS on to the host's resolver, wherever that listens. */
const RESOLVER = "198.18.0.3";
/** Of the metadata services of clouds, which give the credentials of the host to whoever asks. */
const LINK_LOCAL = "169.254.0.0/16";

const CONNECTS_WITHIN_MS = 15_000;
const ENDS_WITHIN_MS = 10_000;

export const resolverText = `nameserver ${RESOLVER}\n`;

/** Runs a program in a namespace of its own; the first argument is the file with `resolverText`. */
export const inNamespace = [
  ...["unshare", "--net", "--mount", "--", "sh", "-c"],
  `[ ! -e /etc/resolv.conf ] || mount --bind "$1" /etc/resolv.conf || exit
ip route add prohibit ${LINK_LOCAL} || exit
shift; exec "$@"`,
];

/** The program has the tag as one of its arguments: it is the name of a link to the namespace. */
function uplinkCommand(tag: string, { uplinkLog }: VmFiles): string[] {
  return [
    ...["sh", "-c", 'log=$1; shift; exec "$@" 2> "$log"', "uplink", uplinkLog],
    ...[PROGRAM, "--configure", `--cidr=${NETWORK}`, "--mtu=65520", "--disable-host-loopback"],
    ...["--enable-sandbox", "--enable-seccomp", "--netns-type=path", tag, INTERFACE],
  ];
}

type Connected = VmTag & { process: ProcessIdentity; files: VmFiles };

/** `start` runs a command in the directory of the VM; it resolves with why it failed, if it does. */
export async function connectUplink(vm: Connected, start: (command: string[]) => Promise<string>): Promise<void> {
  const { process, files } = vm;
  if (uplinksOf(vm).length > 0 && hasRoute(process)) return;
  await removeUplink(vm);
  const tag = tagOf(vm.hostTag, vm.vmId);
  const link = join(files.directory, tag);
  rmSync(link, { force: true });
  symlinkSync(`/proc/${process.pid}/ns/net`, link);
  let why: string | undefined;
  const failed = start(uplinkCommand(tag, files)).then((reason) => {
    why = reason;
  });
  for (const until = performance.now() + CONNECTS_WITHIN_MS; !hasRoute(process); ) {
    if (!isAlive(process)) throw new Error("QEMU is gone.");
    if (why !== undefined) throw new Error(messageIn(files.uplinkLog) || why);
    if (performance.now() > until) throw new Error(messageIn(files.uplinkLog) || `${PROGRAM} does not connect.`);
    await Promise.race([sleep(10), failed]);
  }
}

export async function removeUplink(vm: VmTag): Promise<void> {
  const found = uplinksOf(vm);
  for (const process of found) signalIfAlive(process, "SIGKILL");
  if (!(await allEnded(found, ENDS_WITHIN_MS))) throw new Error(`${PROGRAM} of ${vm.vmId} does not end`);
}

function uplinksOf({ hostTag, vmId }: VmTag): ProcessIdentity[] {
  return taggedProcesses(hostTag)
    .filter((one) => one.vmId === vmId && one.program === PROGRAM)
    .map((one) => one.process);
}

/** The routes of a process are those of its namespace. */
function hasRoute({ pid }: ProcessIdentity): boolean {
  return new RegExp(`^${INTERFACE}\\t00000000\\t`, "m").test(textOf(`/proc/${pid}/net/route`));
}

function messageIn(log: string): string {
  return textOf(log)
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("WARNING"))
    .join(" ")
    .slice(-600);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
