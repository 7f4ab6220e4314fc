// Settings of the agent on a host.

import { isIP } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { HEARTBEAT_SECONDS } from "@holdfast/contracts/node/limits";
import { secretPrefix } from "@holdfast/contracts/secrets";
import {
  type Environment,
  integer,
  kinds,
  oneOf,
  optional,
  readSettings,
  setting,
  type Values,
} from "@holdfast/kit/settings";
import type { LinkKind } from "./link/client.ts";
import type { LogLevel } from "./log.ts";
import { vmSettings } from "./vms/settings.ts";

const stateDirSetting = setting(kinds.path, {
  env: "HOLDFAST_AGENT_STATE_DIR",
  default: defaultStateDirectory(process.env),
  defaultText: "/etc/holdfast as root, else $XDG_STATE_HOME/holdfast-agent or ~/.local/state/holdfast-agent",
  help: "Directory of the agent's key, journal and diagnostics. Only its user may have access.",
});

/** The agent authenticates with its certificate, which requires TLS. */
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
    help: "An address of this host, for display only. It is reported and never connected to.",
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
    help: "Name of this host at enrollment. Default: its host name. A bootstrap token of another node is rejected.",
  },
);

/** As the server takes it (`NodeLabel`). */
const label = {
  allowed: "up to 63 letters, digits, dots, underscores and hyphens",
  parse: (text: string) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(text) ? text : undefined),
};

const recoveryTokenSetting = optional(
  {
    allowed: "a recovery token, which begins with hfr_",
    parse: (text) => (text.startsWith(secretPrefix.recovery) ? text : undefined),
  },
  {
    env: "HOLDFAST_RECOVERY_TOKEN",
    secret: true,
    help:
      "A recovery token from the operator. The agent uses it only while the server has sent it none. HOLDFAST_ENROLLMENT_TOKEN " +
      "of a running agent works in the same way if it contains a recovery token.",
  },
);

const bootstrapTokenSetting = optional(kinds.text, {
  env: "HOLDFAST_BOOTSTRAP_TOKEN",
  aliases: ["NODE_AGENT_BOOTSTRAP_TOKEN"],
  secret: true,
  help: "This host's bootstrap token: an agent without an identity enrolls with it automatically, at HOLDFAST_NODE_API_URL.",
});

export const agentSettings = {
  stateDir: stateDirSetting,
  bootstrapToken: bootstrapTokenSetting,
  nodeName: nodeNameSetting,
  port: setting(kinds.port, {
    env: "HOLDFAST_AGENT_PORT",
    default: 9000,
    help: "Port of the agent's local /healthz, /v1/capacity and /metrics.",
  }),
  bind: setting(
    {
      allowed: "an IP address, or localhost",
      parse: (text: string) => (text === "localhost" || isIP(text) ? text : undefined),
    },
    {
      env: "HOLDFAST_AGENT_BIND",
      default: "127.0.0.1",
      help: "Address of the agent's local listener. It requires no authentication, so keep it on loopback or a trusted network.",
    },
  ),
  advertiseAddress: advertiseSetting,
  nodeApiUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_API_URL",
    aliases: ["GPUAAS_API_URL", "NODE_AGENT_CONTROL_PLANE_URL"],
    help: "On a host: URL of the node-facing API, instead of the one in the node's profile.",
  }),
  nodeTerminalUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "On a host: node-facing URL of the terminal gateway, instead of the one in the node's profile.",
  }),
  recoveryApiUrl: optional(httpsUrl, {
    env: "HOLDFAST_RECOVERY_API_URL",
    aliases: ["GPUAAS_RECOVERY_API_URL"],
    help: "On a host: the only URL at which the agent recovers a lost identity. Default: pinned when the node joined; if it does not respond, the node-facing URL.",
  }),
  recoveryCaPath: optional(kinds.path, {
    env: "HOLDFAST_RECOVERY_CA_BUNDLE_PATH",
    aliases: ["GPUAAS_RECOVERY_CA_BUNDLE_PATH"],
    help: "On a host: PEM file with the only CAs that are trusted for recovery. Default: recovery-ca.pem in the state directory, written when the node joined.",
  }),
  recoveryToken: recoveryTokenSetting,
  provider: optional(label, {
    env: "HOLDFAST_NODE_PROVIDER",
    help: "Whose machine this host is, such as a cloud or a data centre. Reported; `holdfast node set` overrides it.",
  }),
  networkSide: optional(label, {
    env: "HOLDFAST_NODE_NETWORK_SIDE",
    help: "Where this host is in the network, such as `behind-nat` or `same-lan`. Reported; `holdfast node set` overrides it.",
  }),
  heartbeatSeconds: setting(integer({ min: 1, max: HEARTBEAT_SECONDS }), {
    env: "HOLDFAST_AGENT_HEARTBEAT_SECONDS",
    default: HEARTBEAT_SECONDS,
    help: "Heartbeat interval. A shorter one lets the server detect an offline node sooner; see HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS.",
  }),
  link: setting<LinkKind>(oneOf("stream", "poll"), {
    env: "HOLDFAST_AGENT_LINK",
    default: "stream",
    help: "`stream` keeps one connection open for everything, and polls by itself where a proxy does not pass on streams; `poll` always polls.",
  }),
  diskPressurePercent: setting(integer({ min: 50, max: 99 }), {
    env: "HOLDFAST_NODE_DISK_PRESSURE_PERCENT",
    default: 90,
    help: "Usage of the root file system, in percent, at which the agent reports it as nearly full.",
  }),
  executions: setting(oneOf("on", "off"), {
    env: "HOLDFAST_AGENT_EXECUTIONS",
    default: "off",
    help: "`on`: this node also runs steps of workflows, with its own identity, if the platform's policy `node.executions` allows it. See HOLDFAST_EXECUTION_*.",
  }),
  logLevel: setting<LogLevel>(oneOf("error", "warn", "info", "debug"), {
    env: "HOLDFAST_AGENT_LOG_LEVEL",
    default: "info",
    help: "Log level of the agent.",
  }),
  ...vmSettings,
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
    help:
      "The token for `holdfast agent join`, instead of an argument that other users could read. A running agent takes a " +
      "recovery token (hfr_…) from here as from HOLDFAST_RECOVERY_TOKEN.",
  }),
};

/** Of a running agent. Systems that Holdfast follows have one variable for tokens of both kinds. */
export function readAgentSettings(env: Environment): Values<typeof agentSettings> {
  const settings = readSettings(agentSettings, env);
  const { enrollmentToken } = readSettings({ enrollmentToken: joinSettings.enrollmentToken }, env);
  if (settings.recoveryToken !== undefined || !enrollmentToken?.startsWith(secretPrefix.recovery)) return settings;
  return { ...settings, recoveryToken: enrollmentToken };
}

function defaultStateDirectory(env: Environment): string {
  const ofUser = env["XDG_STATE_HOME"] || join(homeDirectory(), ".local/state");
  return process.getuid?.() === 0 ? "/etc/holdfast" : join(ofUser, "holdfast-agent");
}

/** In a container the user may have none, and Node then throws; a directory that cannot be written is reported later. */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return "/";
  }
}
