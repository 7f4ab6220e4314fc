// Settings of the agent that runs steps, `holdfast agent connect`.

import { homedir } from "node:os";
import { join } from "node:path";
import {
  type EnforcedLimit,
  enforcedLimits,
  MOST_OUTPUT_CHARACTERS,
  type SandboxBackend,
  sandboxBackends,
} from "@holdfast/contracts/execution/limits";
import { integer, kinds, oneOf, optional, type SettingKind, setting, type Values } from "@holdfast/kit/settings";
import { agentSettings, homeDirectory } from "../settings.ts";

/** `~/` too: variables that come from a file were not expanded by a shell. */
const path: SettingKind<string> = {
  allowed: "an absolute path, or one that begins with ~/",
  parse: (text) => {
    if (text.startsWith("~/")) return join(homedir(), text.slice(2));
    return text.startsWith("/") ? text : undefined;
  },
};

const cpuCount: SettingKind<number> = {
  allowed: "a number from 0.01 to 1024, such as 1 or 0.5",
  parse: (text) => {
    const number = /^\d{1,4}(\.\d{1,2})?$/.test(text) ? Number(text) : 0;
    return number >= 0.01 && number <= 1024 ? number : undefined;
  },
};

const limitList: SettingKind<readonly EnforcedLimit[]> = {
  allowed: `all, or some of ${enforcedLimits.join(", ")}, separated by commas`,
  parse: (text) => {
    if (text === "all") return enforcedLimits;
    const names = text.split(",").map((part) => part.trim());
    const known = enforcedLimits.filter((one) => names.includes(one));
    return names.every((name) => known.some((one) => one === name)) ? known : undefined;
  },
};

const variableList: SettingKind<readonly string[]> = {
  allowed: "names of environment variables, separated by commas",
  parse: (text) => {
    const names = text.split(",").map((part) => part.trim());
    return names.every((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) ? names : undefined;
  },
};

export const EXECUTION_STATE_DIR = "HOLDFAST_EXECUTION_STATE_DIR";
export const BACKEND_SETTING = "HOLDFAST_EXECUTION_BACKEND";
export const ALLOW_NETWORK = "HOLDFAST_EXECUTION_ALLOW_NETWORK";
export const ALLOW_UNENFORCED = "HOLDFAST_EXECUTION_ALLOW_UNENFORCED";
export const PASSTHROUGH = "HOLDFAST_EXECUTION_ENV_PASSTHROUGH";

export const executionSettings = {
  credentials: optional(path, {
    env: "HOLDFAST_EXECUTION_CREDENTIALS",
    defaultText: "~/.holdfast/agent.json; ~/.vespid/agent.json is read where that does not exist",
    help: "File with the agent's token, readable by its owner only. `holdfast agent connect --pairing-token` writes it.",
  }),
  stateDir: optional(path, {
    env: EXECUTION_STATE_DIR,
    defaultText: "`executions` beside the credentials",
    help: "Directory of the journal of steps and of the pinned signing keys, one below it for each agent. Deleting it while results are unsent loses them.",
  }),
  caFile: optional(path, {
    env: "HOLDFAST_EXECUTION_CA_FILE",
    aliases: ["VESPID_AGENT_TLS_CA_FILE"],
    help: "PEM file with CAs that `holdfast agent connect` trusts in addition, for https and wss.",
  }),
  backend: optional<SandboxBackend>(oneOf(...sandboxBackends), {
    env: BACKEND_SETTING,
    aliases: ["VESPID_AGENT_EXEC_BACKEND"],
    defaultText: "the first of docker, podman and bubblewrap that works",
    help: "What runs shell steps on this host. `host` runs scripts as the user of the agent, without isolation, and is never chosen by itself.",
  }),
  workdirRoot: setting(path, {
    env: "HOLDFAST_EXECUTION_WORKDIR_ROOT",
    aliases: ["VESPID_AGENT_WORKDIR_ROOT"],
    default: join(homeDirectory(), ".holdfast/workdir"),
    defaultText: "~/.holdfast/workdir",
    help: "Directory below which every step gets a working directory, which is removed when the step has ended.",
  }),
  timeoutMs: setting(integer({ min: 1000, max: 600_000 }), {
    env: "HOLDFAST_EXECUTION_TIMEOUT_MS",
    aliases: ["VESPID_AGENT_DOCKER_TIMEOUT_MS"],
    default: 30_000,
    help: "How long a shell step may run, in milliseconds, on every backend. A step may ask for less.",
  }),
  memoryMb: setting(integer({ min: 16, max: 1_048_576 }), {
    env: "HOLDFAST_EXECUTION_MEMORY_MB",
    aliases: ["VESPID_AGENT_DOCKER_MEMORY_MB"],
    default: 256,
    help: "Memory of a shell step in MiB. Where /work and /tmp are in memory, they are part of it.",
  }),
  cpus: setting(cpuCount, {
    env: "HOLDFAST_EXECUTION_CPUS",
    aliases: ["VESPID_AGENT_DOCKER_CPUS"],
    default: 1,
    help: "Processors of a shell step.",
  }),
  pids: setting(integer({ min: 4, max: 100_000 }), {
    env: "HOLDFAST_EXECUTION_PIDS",
    aliases: ["VESPID_AGENT_DOCKER_PIDS"],
    default: 256,
    help: "Processes and threads of a shell step.",
  }),
  diskMb: setting(integer({ min: 1, max: 1_048_576 }), {
    env: "HOLDFAST_EXECUTION_DISK_MB",
    default: 128,
    help: "What /work of a shell step can hold, in MiB.",
  }),
  outputMaxChars: setting(integer({ min: 256, max: MOST_OUTPUT_CHARACTERS }), {
    env: "HOLDFAST_EXECUTION_OUTPUT_MAX_CHARS",
    aliases: ["VESPID_AGENT_DOCKER_OUTPUT_MAX_CHARS"],
    default: MOST_OUTPUT_CHARACTERS,
    help: "Characters that are kept of what a shell step prints, of each of its two streams.",
  }),
  image: setting(kinds.text, {
    env: "HOLDFAST_EXECUTION_IMAGE",
    aliases: ["VESPID_AGENT_DOCKER_IMAGE"],
    default: "node:24-alpine",
    help: "Image of shell steps that name none, on docker and podman.",
  }),
  networkDefault: setting<"none" | "enabled">(oneOf("none", "enabled"), {
    env: "HOLDFAST_EXECUTION_NETWORK_DEFAULT",
    aliases: ["VESPID_AGENT_DOCKER_NETWORK_DEFAULT"],
    default: "none",
    help: "Whether a shell step that does not say has the network. `enabled` needs HOLDFAST_EXECUTION_ALLOW_NETWORK.",
  }),
  allowNetwork: setting<"yes" | "no">(oneOf("yes", "no"), {
    env: ALLOW_NETWORK,
    default: "no",
    help: "Whether shell steps in a sandbox may have the network. A step has it only if it asks for it, too.",
  }),
  allowUnenforced: setting(limitList, {
    env: ALLOW_UNENFORCED,
    default: [],
    defaultText: "none",
    help: "Limits without which shell steps run where the backend cannot enforce them. Without this, such a step fails.",
  }),
  envPassthrough: setting(variableList, {
    env: PASSTHROUGH,
    default: [],
    defaultText: "none",
    help: "Variables of the agent's environment that a shell step gets if it names them in sandbox.envPassthroughAllowlist.",
  }),
  connectorNetworks: setting(kinds.addressList, {
    env: "HOLDFAST_EXECUTION_CONNECTOR_NETWORKS",
    default: [],
    defaultText: "none",
    help: "Addresses that connectors of this agent may reach beside public and private ones, such as 127.0.0.1 for services of this host. Loopback, link-local and metadata addresses are refused unless they are listed. Connectors that use the network are served only if --connectors lists them.",
  }),
  logLevel: agentSettings.logLevel,
};
export type ExecutionValues = Values<typeof executionSettings>;
