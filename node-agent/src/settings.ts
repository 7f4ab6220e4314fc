// Settings of the agent on a host.

import { isIP } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { HEARTBEAT_SECONDS } from "@holdfast/contracts/node-limits";
import { type Environment, integer, kinds, oneOf, optional, setting } from "@holdfast/kit/settings";
import type { LogLevel } from "./log.ts";

const stateDirSetting = setting(kinds.path, {
  env: "HOLDFAST_AGENT_STATE_DIR",
  default: defaultStateDirectory(process.env),
  defaultText: "/etc/holdfast as root, else $XDG_STATE_HOME/holdfast-agent or ~/.local/state/holdfast-agent",
  help: "Where the agent keeps its key, its journal and its diagnostics. Only its user may enter it.",
});

/** The certificate is the agent's proof: in clear text it could not show it. */
const httpsUrl = {
  allowed: "an https:// address without path, such as https://nodes.example.com:18442",
  parse: (text: string) => (text.startsWith("https://") ? kinds.httpUrl.parse(text) : undefined),
};

const advertiseSetting = optional(
  {
    allowed: "an address or host name of up to 200 characters",
    parse: (text) => (/^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined),
  },
  {
    env: "HOLDFAST_AGENT_ADVERTISE_ADDRESS",
    aliases: ["NODE_AGENT_ADVERTISE_ADDR"],
    help: "An address of this host for people to read. It is reported and never dialled.",
  },
);

const nodeNameSetting = optional(
  {
    allowed: "a name of up to 80 characters",
    parse: (text) => (/^[^\p{Cc}]{1,80}$/u.test(text) ? text : undefined),
  },
  {
    env: "HOLDFAST_NODE_NAME",
    aliases: ["NODE_AGENT_HOST_ID"],
    help: "What this host is called when it joins; left out, its host name. A bootstrap token for another node is refused.",
  },
);

const bootstrapTokenSetting = optional(kinds.text, {
  env: "HOLDFAST_BOOTSTRAP_TOKEN",
  aliases: ["NODE_AGENT_BOOTSTRAP_TOKEN"],
  secret: true,
  help: "This host's bootstrap token: an agent without an identity joins with it by itself, at HOLDFAST_NODE_API_URL.",
});

export const agentSettings = {
  stateDir: stateDirSetting,
  bootstrapToken: bootstrapTokenSetting,
  nodeName: nodeNameSetting,
  port: setting(kinds.port, {
    env: "HOLDFAST_AGENT_PORT",
    default: 9000,
    help: "Port of the agent's own /healthz, /v1/capacity and /metrics.",
  }),
  bind: setting(
    {
      allowed: "an IP address, or localhost",
      parse: (text: string) => (text === "localhost" || isIP(text) ? text : undefined),
    },
    {
      env: "HOLDFAST_AGENT_BIND",
      default: "127.0.0.1",
      help: "Address the agent's own listener is on. It needs no sign-in, so keep it on loopback or a trusted network.",
    },
  ),
  advertiseAddress: advertiseSetting,
  nodeApiUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_API_URL",
    aliases: ["GPUAAS_API_URL", "NODE_AGENT_CONTROL_PLANE_URL"],
    help: "On a host: the node-facing API, instead of the address in the node's profile.",
  }),
  nodeTerminalUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "On a host: the node-facing address of the terminal gateway, instead of the one in the node's profile.",
  }),
  heartbeatSeconds: setting(integer({ min: 1, max: HEARTBEAT_SECONDS }), {
    env: "HOLDFAST_AGENT_HEARTBEAT_SECONDS",
    default: HEARTBEAT_SECONDS,
    help: "How often the agent says that it is well. Less lets the server notice sooner that it is not; see HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS.",
  }),
  diskPressurePercent: setting(integer({ min: 50, max: 99 }), {
    env: "HOLDFAST_NODE_DISK_PRESSURE_PERCENT",
    default: 90,
    help: "From how much of the root file system on the agent reports that it is nearly full.",
  }),
  logLevel: setting<LogLevel>(oneOf("error", "warn", "info", "debug"), {
    env: "HOLDFAST_AGENT_LOG_LEVEL",
    default: "info",
    help: "How much the agent logs.",
  }),
};

export const joinSettings = {
  stateDir: stateDirSetting,
  bootstrapToken: bootstrapTokenSetting,
  nodeName: nodeNameSetting,
  nodeApiUrl: agentSettings.nodeApiUrl,
  advertiseAddress: advertiseSetting,
  enrollmentToken: optional(kinds.text, {
    env: "HOLDFAST_ENROLLMENT_TOKEN",
    aliases: ["GPUAAS_ENROLLMENT_TOKEN"],
    secret: true,
    help: "The token for `holdfast agent join`, so that it does not stand on the command line.",
  }),
};

function defaultStateDirectory(env: Environment): string {
  const ofUser = env["XDG_STATE_HOME"] || join(homeDirectory(), ".local/state");
  return process.getuid?.() === 0 ? "/etc/holdfast" : join(ofUser, "holdfast-agent");
}

/** In a container the user may have none, and Node then throws; what cannot be written is refused later by name. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return "/";
  }
}
