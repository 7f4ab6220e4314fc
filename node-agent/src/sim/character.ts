// The properties of a simulated node: invented hardware, and sometimes a problem. The same number and seed
// are always the same node. Its name, system and capability all identify it as simulated.

import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import type { Finding } from "../diagnostics/self-checks.ts";
import { chanceOf } from "./random.ts";

export type Character = {
  facts: HostFacts;
  /** Nodes of one rack go offline together. */
  rack: number;
  findings: Finding[];
  /** How many of its tasks fail, of 1. */
  failureRate: number;
};

/** Marks a node as simulated. */
export const SIMULATED = "simulated";
const RACK_SIZE = 32;

const GB = 1024 ** 3;

export function simName(number: number): string {
  return `sim-${String(number).padStart(5, "0")}`;
}

/** The number in the name of a simulated node. */
export function simNumber(name: string): number | undefined {
  const digits = /^sim-(\d{5,6})$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function characterOf(
  number: number,
  options: {
    seed: number;
    agentVersion: string;
    /** Whether it also runs VMs, which exist in memory only. */
    vmHost?: boolean;
  },
): Character {
  const chance = chanceOf(options.seed, number);
  const cpus = chance.pick([8, 16, 16, 32, 32, 64, 128]);
  const memory = cpus * chance.pick([2, 4, 4, 8]) * GB;
  const disk = chance.pick([240, 480, 960, 1920]) * GB;
  const full = chance.happens(0.01);
  const rack = Math.floor(number / RACK_SIZE);
  const accelerators = chance.happens(0.25) ? chance.pick([1, 2, 4, 8]) : 0;
  return {
    rack,
    // A few fail often, most hardly ever.
    failureRate: chance.happens(0.02) ? 0.5 : 0.01,
    findings: full
      ? [{ reason: "node_observability_disk_pressure", detail: "96 % of the root file system is used" }]
      : [],
    facts: {
      // Whole racks missed the last upgrade.
      agent_version: chanceOf(options.seed, 1_000_000 + rack).happens(0.06) ? "0.0.9" : options.agentVersion,
      hostname: simName(number),
      os: { family: "linux", flavour: SIMULATED, version: "1", kernel: SIMULATED },
      arch: chance.happens(0.2) ? "arm64" : "x64",
      cpus,
      memory_bytes: memory,
      memory_free_bytes: Math.round(memory * (0.1 + 0.8 * chance.next())),
      disk: { total_bytes: disk, free_bytes: Math.round(disk * (full ? 0.04 : 0.2 + 0.7 * chance.next())) },
      accelerators: Array.from({ length: accelerators }, (_, slot) => ({
        vendor: SIMULATED,
        model: "accelerator",
        address: `0000:${(slot + 1).toString(16).padStart(2, "0")}:00.0`,
      })),
      capabilities: options.vmHost ? [SIMULATED, VM_HOST] : [SIMULATED],
      account: SIMULATED,
      advertised_address: `10.${rack >> 8}.${rack & 255}.${(number % RACK_SIZE) + 1}`,
    },
  };
}
