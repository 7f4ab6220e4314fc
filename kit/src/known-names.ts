// Environment variables that other systems of this kind use and that no setting of Holdfast has as an alias. A process
// that finds one set reports it at its start: otherwise people would expect it to have an effect.

import type { Environment } from "./settings.ts";

/** By what they are for. A name leaves this table when a setting takes it as an alias. */
const notSupportedYet = {
  "pinning the keys that sign tasks": ["GPUAAS_TASK_SIGNING_PUBKEYS"],
  "virtual machines": [
    ...["NODE_AGENT_NETWORK_BACKEND", "NODE_AGENT_NETWORK_INTERFACE", "NODE_AGENT_BASE_IMAGE_DIR"],
    ...["NODE_AGENT_CLOUD_INIT_DIR", "ALLOW_UNKNOWN_HOST_REGISTRATION"],
  ],
  workflows: [
    ...["NODE_EXEC_TIMEOUT_MS", "WORKFLOW_CONTINUATION_QUEUE_NAME", "WORKFLOW_CONTINUATION_POLL_MS"],
    "WORKFLOW_CONTINUATION_CONCURRENCY",
  ],
  "the sandbox": [
    "VESPID_AGENT_DOCKER_IMAGE",
    ...["VESPID_AGENT_DOCKER_NETWORK_DEFAULT", "VESPID_AGENT_DOCKER_TIMEOUT_MS", "VESPID_AGENT_DOCKER_MEMORY_MB"],
    ...["VESPID_AGENT_DOCKER_CPUS", "VESPID_AGENT_DOCKER_PIDS", "VESPID_AGENT_DOCKER_OUTPUT_MAX_CHARS"],
  ],
} as const satisfies Record<string, readonly string[]>;

/** Will never be supported, with the reason. */
const withoutMeaning = { NODE_AGENT_PIP_CONSTRAINT: "the agent has no Python packages" };

/** The status of each name, worded to follow "is". */
export const unsupportedNames: ReadonlyMap<string, string> = new Map([
  ...Object.entries(notSupportedYet).flatMap(([purpose, names]) =>
    names.map((name): [string, string] => [name, `known, not supported yet; it is for ${purpose}`]),
  ),
  ...Object.entries(withoutMeaning).map(([name, why]): [string, string] => [name, `known, ignored; ${why}`]),
]);

/** One line for each that is set. Never the value: it may be secret. */
export function warningsAboutUnsupported(env: Environment): string[] {
  return [...unsupportedNames]
    .filter(([name]) => (env[name] ?? "") !== "")
    .map(([name, status]) => `${name} is set: ${status}.`);
}
