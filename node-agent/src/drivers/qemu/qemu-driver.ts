// VMs by QEMU on this host. QEMU and the writer of its serial log run below one shell, in a session of their own; under systemd
// in a service of their own, because the agent's service would confine them like the agent and end them with it.

import { execFile, spawn } from "node:child_process";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { allEnded, type ProcessIdentity } from "@holdfast/kit/processes";
import { hasSystemd } from "../pty/confinement.ts";
import { bootProbe } from "./boot-probe.ts";
import { qemuArguments, systemOf, tagOf } from "./command.ts";
import type { VmDriver, VmProcess } from "./driver.ts";
import { hasFileOpen, killTagged, taggedProcesses, vmOfTag } from "./find.ts";
import { connectQmp } from "./qmp.ts";
import { connectUplink, inNamespace, removeUplink, resolverText } from "./uplink.ts";

/** Nothing of the agent's own environment reaches a VM. */
const environment = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };
const execute = promisify(execFile);
const tool = (program: string, args: readonly string[], timeout = 60_000) =>
  execute(program, args, { env: environment, cwd: "/", timeout, killSignal: "SIGKILL" });

const STARTS_WITHIN_MS = 30_000;
const KILLED_WITHIN_MS = 20_000;

export const qemuDriver: VmDriver = {
  probe: (accelerator) => bootProbe(accelerator, { environment }),

  async inspectImage(path) {
    const { stdout } = await tool("qemu-img", ["info", "-U", "-f", "qcow2", "--output=json", path]).catch(
      complain,
    );
    const info = JSON.parse(stdout) as {
      "virtual-size": number;
      "backing-filename"?: string;
      "format-specific"?: { data?: Record<string, unknown> };
    };
    const data = info["format-specific"]?.data ?? {};
    return { virtualBytes: info["virtual-size"], problem: problemOf(info["backing-filename"], data) };
  },

  async createOverlay({ base, path, bytes }) {
    rmSync(path, { force: true });
    const size = bytes === undefined ? [] : [String(bytes)];
    await tool("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", base, path, ...size]).catch(
      complain,
    );
  },

  async removeOverlay(path) {
    rmSync(path, { force: true });
  },

  async start(vm) {
    const system = systemOf(process.arch);
    if (!system) throw new Error(`no VM can run on ${process.arch}`);
    const launcher = launchWith(vm, system);
    try {
      return await answering(vm, launcher);
    } catch (error) {
      const said = tail(vm.files.qemuLog).trim();
      throw new Error(said || (error as Error).message);
    }
  },

  processes: taggedProcesses,

  async kill(vm) {
    for (const until = performance.now() + KILLED_WITHIN_MS; ; ) {
      const found = killTagged(vm);
      if (found.length === 0) return;
      if (performance.now() > until) throw new Error(`processes of ${vm.vmId} do not end`);
      await allEnded(found, 1000);
    }
  },

  hasOpen: hasFileOpen,

  connectUplink: (vm) =>
    connectUplink(vm, (command) =>
      startBeside({ unit: `${tagOf(vm.hostTag, vm.vmId)}-uplink`, directory: vm.files.directory }, command),
    ),
  removeUplink,

  async createTap({ tap, bridge, ...vm }) {
    const there = await taps();
    if (!there.some(({ ifname }) => ifname === tap))
      await tool("ip", ["tuntap", "add", tap, "mode", "tap"]).catch(complain);
    await tool("ip", ["link", "set", tap, "alias", tagOf(vm.hostTag, vm.vmId)]).catch(complain);
    await tool("ip", ["link", "set", tap, "master", bridge, "up"]).catch(complain);
  },

  async removeTap({ tap, ...vm }) {
    const found = (await taps()).find(({ ifname }) => ifname === tap);
    // A crash may have come between its creation and its alias; its name is the VM's alone.
    if (!found || (found.ifalias !== undefined && found.ifalias !== tagOf(vm.hostTag, vm.vmId))) return;
    await tool("ip", ["link", "delete", tap]).catch(complain);
  },

  async taps(hostTag) {
    return (await taps()).flatMap(({ ifname, ifalias }) => {
      const vmId = vmOfTag(hostTag, ifalias ?? "");
      return vmId === undefined ? [] : [{ hostTag, vmId, tap: ifname }];
    });
  },
};

function problemOf(backing: string | undefined, data: Record<string, unknown>): string | undefined {
  if (backing !== undefined) return "it has a backing file";
  if (data["data-file"] !== undefined) return "it has a data file";
  if (data["corrupt"] === true) return "it is marked as corrupt";
  return undefined;
}

type Link = { ifname: string; ifalias?: string };
async function taps(): Promise<Link[]> {
  const { stdout } = await tool("ip", ["-json", "link", "show"]).catch(complain);
  return JSON.parse(stdout || "[]") as Link[];
}

/** The tool's own message says more than its command line. */
function complain(error: unknown): never {
  const { stderr, message } = error as { stderr?: string; message: string };
  throw new Error((stderr ?? "").trim() || message);
}

/**
 * Runs QEMU, and writes its serial console, each piece at once. Input comes from a pipe that consoles write to; it is opened for
 * both directions, so that it never ends. When half of the allowed size is reached, the kernel ends the
 * writer, and a new file is begun; the older one is kept. It never stops reading, because QEMU would wait for it.
 */
const launcher = `
serial=$1; input=$2; blocks=$3; log=$4; shift 4
[ -p "$input" ] || mkfifo -m 600 "$input" || exit 1
"$@" <> "$input" 2> "$log" | {
  ulimit -c 0
  while :; do
    (ulimit -f "$blocks"; exec cat > "$serial")
    status=$?
    [ $status -eq ${128 + constants.signals.SIGXFSZ} ] || break
    mv -f "$serial" "$serial.1"
  done
  [ $status -eq 0 ] || exec cat > /dev/null
}`;
/** Of `ulimit -f`. */
const BLOCK = 512;

function launchWith(vm: VmProcess, system: { program: string; machine: string }): Promise<string> {
  const { directory, serialLog, serialInput, qemuLog } = vm.files;
  const tag = tagOf(vm.hostTag, vm.vmId);
  const asRoot = process.geteuid?.() === 0;
  const blocks = String(Math.ceil(vm.serialBytes / 2 / BLOCK));
  return startBeside({ unit: tag, directory }, [
    ...["sh", "-c", launcher, tag, serialLog, serialInput, blocks, qemuLog],
    ...[...namespaceOf(vm), system.program, ...qemuArguments(vm, { machine: system.machine, asRoot })],
  ]);
}

function namespaceOf({ network, files, hostTag, vmId }: VmProcess): string[] {
  if (network.backend !== "user") return [];
  if (!network.uplink) return ["unshare", "--net", "--"];
  writeFileSync(files.resolver, resolverText);
  // QEMU reads it as nobody, whatever the agent's umask is.
  chmodSync(files.resolver, 0o644);
  return [...inNamespace, tagOf(hostTag, vmId), files.resolver];
}

/** Runs a command that outlives the agent. Resolves with why it failed, if it does; otherwise it tells nothing. */
function startBeside(place: { unit: string; directory: string }, command: string[]): Promise<string> {
  const [file = "", ...args] = [...(hasSystemd() ? asService(place) : []), ...command];
  const child = spawn(file, args, { cwd: place.directory, env: environment, detached: true, stdio: "ignore" });
  child.unref();
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => {
      // systemd-run itself succeeds at once.
      if (code !== 0 || !hasSystemd()) resolve(`It ended with ${signal ?? code}`);
    });
  });
}

function asService({ unit, directory }: { unit: string; directory: string }): string[] {
  return [
    ...["systemd-run", "--quiet", "--collect", `--unit=${unit}`, "--description=VM of Holdfast"],
    ...[
      `--working-directory=${directory}`,
      ...Object.entries(environment).map(([name, value]) => `--setenv=${name}=${value}`),
    ],
    "--",
  ];
}

/** Resolves with QEMU's process when it answers at its socket. */
async function answering(vm: VmProcess, failed: Promise<string>): Promise<ProcessIdentity> {
  let why: string | undefined;
  void failed.then((reason) => {
    why = reason;
  });
  for (const until = performance.now() + STARTS_WITHIN_MS; ; ) {
    try {
      const qmp = await connectQmp(vm.files.qmp, { onEvent: () => undefined, onClose: () => undefined });
      qmp.close();
      const found = taggedProcesses(vm.hostTag).find(({ vmId, main }) => main && vmId === vm.vmId);
      if (found) return found.process;
    } catch {
      // It is starting, or has failed.
    }
    if (why !== undefined) throw new Error(why);
    if (performance.now() > until) throw new Error("QEMU does not answer.");
    await Promise.race([sleep(20), failed]);
  }
}

function tail(path: string): string {
  try {
    return readFileSync(path, "utf8").slice(-600);
  } catch {
    return "";
  }
}
