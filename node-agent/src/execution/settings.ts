// Settings of the agent that runs steps, `holdfast agent connect`.

import { homedir } from "node:os";
import { join } from "node:path";
import { type SandboxBackend, sandboxBackends } from "@holdfast/contracts/execution/limits";
import { oneOf, optional, type SettingKind, setting } from "@holdfast/kit/settings";
import { agentSettings, homeDirectory } from "../settings.ts";

/** `~/` too: variables that come from a file were not expanded by a shell. */
const path: SettingKind<string> = {
  allowed: "an absolute path, or one that begins with ~/",
  parse: (text) => {
    if (text.startsWith("~/")) return join(homedir(), text.slice(2));
    return text.startsWith("/") ? text : undefined;
  },
};

export const EXECUTION_STATE_DIR = "HOLDFAST_EXECUTION_STATE_DIR";
export const BACKEND_SETTING = "HOLDFAST_EXECUTION_BACKEND";

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
    help: "What runs shell steps on this host. Only `host` is supported yet: scripts run as the user of the agent, without isolation. Unset: shell steps fail.",
  }),
  workdirRoot: setting(path, {
    env: "HOLDFAST_EXECUTION_WORKDIR_ROOT",
    aliases: ["VESPID_AGENT_WORKDIR_ROOT"],
    default: join(homeDirectory(), ".holdfast/workdir"),
    defaultText: "~/.holdfast/workdir",
    help: "Directory below which every step gets a working directory, which is removed when the step has ended.",
  }),
  logLevel: agentSettings.logLevel,
};
