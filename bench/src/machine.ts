// Figures mean little without the machine they were measured on.

import { cpus, release, totalmem } from "node:os";

export type Machine = { cpu: string; cores: number; memory_gb: number; kernel: string; node: string };

export function describeMachine(): Machine {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() || "unknown",
    cores: processors.length,
    memory_gb: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    node: process.versions.node,
  };
}
