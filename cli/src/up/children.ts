// The processes that `holdfast up` runs, and the settings of each.

import { fileURLToPath } from "node:url";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { databaseSettings, type Logins, loginEnvironment } from "@holdfast/control-plane/database/settings";
import { sealingSettings } from "@holdfast/control-plane/mechanisms/sealing/settings";
import { gatewayNodeFlags } from "@holdfast/gateway/node-flags";
import { gatewaySettings } from "@holdfast/gateway/settings";
import type { Environment } from "@holdfast/kit/settings";
import { urlOf } from "./addresses.ts";
import { type Child, superviseChild } from "./child.ts";
import type { DataDirectory } from "./data-directory.ts";
import { environmentFor, type ProcessName } from "./settings.ts";

/** What makes the server; the agent is a client of it. */
type ServerProcess = Exclude<ProcessName, "agent">;

export type ChildEvents = {
  onStarted(name: ProcessName, pid: number): void;
  report(text: string): void;
};

export type Ports = {
  api: number;
  gateway: number;
  /** The node-facing API's. */
  node: number;
  /** The api's own, for the gateway. */
  internal: number;
  /** The gateway's node-facing one. */
  nodeTerminal: number;
  /** The gateway's own, for workers. */
  gatewayInternal: number;
};

export type Children = {
  /** Resolves when all serve, with the ports they listen on. */
  ready: Promise<Ports>;
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

export const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

/** Which setting a process's listener takes its port from. */
const portSettings: Record<ServerProcess, Record<string, string>> = {
  api: {
    public: apiSettings.port.env,
    node: apiSettings.nodePort.env,
    internal: apiSettings.internalPort.env,
  },
  gateway: {
    public: gatewaySettings.port.env,
    node: gatewaySettings.nodePort.env,
    internal: gatewaySettings.internalPort.env,
  },
  worker: {},
};

/** The setting of each address, by process and listener. */
const portNames: Record<ServerProcess, Record<string, keyof Ports>> = {
  api: { public: "api", node: "node", internal: "internal" },
  gateway: { public: "gateway", node: "nodeTerminal", internal: "gatewayInternal" },
  worker: {},
};

const nodeFlags: Record<ServerProcess, readonly string[]> = { api: [], gateway: gatewayNodeFlags, worker: [] };

export function startChildren(options: {
  data: DataDirectory;
  env: Environment;
  logins: Logins;
  kek: string;
  operatorTokenSha256: string;
  serviceToken: string;
  dispatchToken: string;
  /** The address on which the api listens for the gateway. */
  internal: { bind: string; port: number };
  /** The address on which the gateway listens for workers. */
  gatewayInternal: { bind: string; port: number; tls: boolean };
  events: ChildEvents;
}): Children {
  const { data, env, events, internal, gatewayInternal } = options;
  const given: Environment = {
    ...loginEnvironment(options.logins),
    // The owner's login is not theirs.
    [databaseSettings.databaseUrl.env]: undefined,
    [sealingSettings.kek.env]: options.kek,
    [apiSettings.operatorTokenSha256.env]: options.operatorTokenSha256,
    [apiSettings.serviceToken.env]: options.serviceToken,
    [gatewaySettings.dispatchToken.env]: options.dispatchToken,
    ...(env[gatewaySettings.logStoreDir.env] ? {} : { [gatewaySettings.logStoreDir.env]: `${data.logs}/store` }),
    // Done already, by the owner's login, which the processes do not get.
    [apiSettings.migrateOnStart.env]: "no",
  };
  const taken: Ports = {
    ...{ api: 0, gateway: 0, node: 0, nodeTerminal: 0 },
    internal: internal.port,
    gatewayInternal: gatewayInternal.port,
  };
  const forGateway = () => ({
    [gatewaySettings.apiUrl.env]: urlOf({ bind: internal.bind, port: taken.internal, tls: true }),
  });
  /** Unless it is set: workers may reach the gateway by another address. Unknown until the gateway has chosen a free port. */
  const forWorker = () => {
    const { env: setting, aliases } = gatewaySettings.internalUrl;
    const isSet = [setting, ...aliases].some((spelling) => (env[spelling] ?? "") !== "");
    if (isSet || taken.gatewayInternal === 0) return {};
    return { [setting]: urlOf({ ...gatewayInternal, port: taken.gatewayInternal }) };
  };
  const supervise = (name: ServerProcess): Child => {
    const ports: Environment = {};
    const more = () => (name === "gateway" ? forGateway() : name === "worker" ? forWorker() : {});
    return superviseChild({
      name,
      args: [...nodeFlags[name], command, name],
      environment: () => environmentFor(name, env, { ...given, ...more(), ...ports }),
      logFile: `${data.logs}/${name}.log`,
      onStarted: (pid) => events.onStarted(name, pid),
      onReady: (reported) => {
        for (const [listener, setting] of Object.entries(portSettings[name])) {
          ports[setting] = String(reported[listener] ?? 0);
        }
        for (const [listener, port] of Object.entries(portNames[name])) taken[port] = reported[listener] ?? 0;
      },
      report: events.report,
    });
  };
  const api = supervise("api");
  const worker = supervise("worker");
  const all = [api, worker];
  let stopped = false;
  const startGateway = async () => {
    // It needs the api's address, which is known only after the api has chosen a free port.
    if (internal.port === 0) await api.firstReady;
    if (stopped) return;
    const gateway = supervise("gateway");
    all.push(gateway);
    await gateway.firstReady;
  };
  return {
    ready: Promise.all([startGateway(), api.firstReady, worker.firstReady]).then(() => taken),
    stop: async (how) => {
      stopped = true;
      await Promise.all(all.map((child) => child.stop(how)));
    },
  };
}
