import type { AgentSetup, HostFacts } from "@holdfast/contracts/node/protocol";

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

export const someSetup: AgentSetup = {
  urls: { node_api: "https://nodes.example.com:18442", node_terminal: null },
  ...{ install_root: "/opt/holdfast-agent/versions/0.1.0", unit_sha256: null, env_sha256: null },
  ...{ source_address: null, provider: null, network_side: null },
  root_disk: { used_percent: 40, pressure_percent: 90 },
};
