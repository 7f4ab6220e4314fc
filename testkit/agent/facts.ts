import type { HostFacts } from "@holdfast/contracts/node/protocol";

export const someFacts: HostFacts = {
  agent_version: "0.1.0",
  hostname: "test-host",
  os: { family: "linux", flavour: "debian", version: "12", kernel: "6.1" },
  arch: "x64",
  cpus: 2,
  memory_bytes: 1,
  memory_free_bytes: 1,
  disk: { total_bytes: 1, free_bytes: 1 },
  accelerators: [],
  capabilities: [],
  account: "root",
  advertised_address: null,
};
