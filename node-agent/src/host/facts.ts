// What this host is and has, detected. No process is started for it, and nothing is configured: an
// operator who moves the agent to another machine has nothing to correct.

import { accessSync, constants, readFileSync, statfsSync } from "node:fs";
import os from "node:os";
import { dirname, join } from "node:path";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { findAccelerators } from "./accelerators.ts";

export type FactsOptions = {
  agentVersion: string;
  stateDir: string;
  advertisedAddress: string | null;
  /** Where /etc, /proc, /sys and /usr are found; tests provide a tree. */
  root?: string;
  /** From uname(1); tests provide another system's. */
  system?: { type: string; release: string };
  euid?: number;
  /** Found by other parts of the agent. */
  capabilities?: readonly string[];
};

export type DetectedHost = {
  /** Memory and disk at most a second old; the rest as it was at the start. */
  hostFacts(): HostFacts;
  /** Changes with every boot of the machine. */
  bootId: string;
};

const LONGEST = 200;
const FRESH_MS = 1000;

export function detectHost(options: FactsOptions): DetectedHost {
  const root = options.root ?? "/";
  const fixed = {
    agent_version: bounded(options.agentVersion),
    hostname: bounded(os.hostname()),
    os: operatingSystem(root, options.system ?? { type: os.type(), release: os.release() }),
    arch: os.arch(),
    cpus: os.availableParallelism(),
    accelerators: findAccelerators(root),
    capabilities: [
      ...capabilities(root, options.euid ?? process.geteuid?.() ?? -1),
      ...(options.capabilities ?? []),
    ],
    account: bounded(account()),
    advertised_address: options.advertisedAddress === null ? null : bounded(options.advertisedAddress),
  };
  let measured = { at: performance.now(), ...measure(root, options.stateDir) };
  return {
    bootId: bootId(root),
    hostFacts() {
      const now = performance.now();
      if (now - measured.at >= FRESH_MS) measured = { at: now, ...measure(root, options.stateDir) };
      const { at: _, ...present } = measured;
      return { ...fixed, ...present };
    },
  };
}

function measure(root: string, stateDir: string): Pick<HostFacts, "memory_bytes" | "memory_free_bytes" | "disk"> {
  const meminfo = read(`${root}/proc/meminfo`) ?? "";
  const kilobytes = (name: string) => {
    const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(meminfo)?.[1];
    return found === undefined ? undefined : Number(found) * 1024;
  };
  return {
    memory_bytes: kilobytes("MemTotal") ?? os.totalmem(),
    memory_free_bytes: kilobytes("MemAvailable") ?? os.freemem(),
    disk: diskOf(stateDir),
  };
}

/** Of the nearest existing directory: the state directory may not exist yet. */
function diskOf(path: string): HostFacts["disk"] {
  try {
    const { bsize, blocks, bavail } = statfsSync(path);
    return { total_bytes: bsize * blocks, free_bytes: bsize * bavail };
  } catch {
    return path === dirname(path) ? { total_bytes: 0, free_bytes: 0 } : diskOf(dirname(path));
  }
}

function operatingSystem(root: string, system: { type: string; release: string }): HostFacts["os"] {
  const text = read(join(root, "etc/os-release")) ?? read(join(root, "usr/lib/os-release")) ?? "";
  const field = (name: string) => new RegExp(`^${name}=["']?([^"'\\n]*)`, "m").exec(text)?.[1] || undefined;
  const family = system.type.toLowerCase();
  const ofSystem = family === "dragonfly" ? "dragonflybsd" : family;
  return {
    family: bounded(family),
    flavour: bounded(field("ID")?.toLowerCase() ?? ofSystem),
    // A rolling release has no version of its own.
    version: bounded(field("VERSION_ID") ?? field("BUILD_ID") ?? system.release),
    kernel: bounded(system.release),
  };
}

const userCommands = ["useradd", "userdel"];
const systemCommands = ["usr/sbin", "usr/bin", "sbin", "bin"];

function capabilities(root: string, euid: number): string[] {
  const makesUsers = euid === 0 && userCommands.every((name) => isInstalled(root, name));
  return makesUsers ? ["own_account", "os_users"] : ["own_account"];
}

function isInstalled(root: string, name: string): boolean {
  return systemCommands.some((directory) => {
    try {
      accessSync(join(root, directory, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** In a container the user may have no name, and Node then throws. */
function account(): string {
  try {
    return os.userInfo().username;
  } catch {
    return String(process.geteuid?.() ?? "unknown");
  }
}

/** Where the kernel does not name its boots, the time of this one does. */
function bootId(root: string): string {
  const named = read(join(root, "proc/sys/kernel/random/boot_id"))?.trim();
  return named || `boot-${Math.round((Date.now() / 1000 - os.uptime()) / 60)}`;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function bounded(text: string): string {
  return text.replaceAll("\0", "").slice(0, LONGEST).toWellFormed();
}
