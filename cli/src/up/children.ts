// The processes that `holdfast up` runs, and what each is given.

import { fileURLToPath } from "node:url";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { databaseSettings } from "@holdfast/control-plane/database/settings";
import { sealingSettings } from "@holdfast/control-plane/sealing/settings";
import { gatewaySettings } from "@holdfast/gateway/settings";
import type { Environment } from "@holdfast/kit/settings";
import { type Child, superviseChild } from "./child.ts";
import type { DataDirectory } from "./data-directory.ts";
import { environmentFor, type ProcessName } from "./settings.ts";

/** What makes the server; the agent is a client of it. */
type ServerProcess = Exclude<ProcessName, "agent">;

export type ChildEvents = {
  onStarted(name: ProcessName, pid: number): void;
  report(text: string): void;
};

/** Of the public API, the gateway, and the node-facing API. */
export type Ports = { api: number; gateway: number; node: number };

export type Children = {
  /** Resolves when all serve, with the ports they listen on. */
  ready: Promise<Ports>;
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

export const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

/** Which setting a process's listener takes its port from. */
const portSettings: Record<ServerProcess, Record<string, string>> = {
  api: { public: apiSettings.port.env, node: apiSettings.nodePort.env },
  gateway: { public: gatewaySettings.port.env },
  worker: {},
};

export function startChildren(options: {
  data: DataDirectory;
  env: Environment;
  databaseUrl: string;
  kek: string;
  operatorTokenSha256: string;
  events: ChildEvents;
}): Children {
  const { data, env, events } = options;
  const given: Environment = {
    [databaseSettings.databaseUrl.env]: options.databaseUrl,
    [sealingSettings.kek.env]: options.kek,
    [apiSettings.operatorTokenSha256.env]: options.operatorTokenSha256,
    // Done already, by the owner's login, which the processes do not get.
    [apiSettings.migrateOnStart.env]: "no",
  };
  const taken: Ports = { api: 0, gateway: 0, node: 0 };
  const supervise = (name: ServerProcess): Child => {
    const ports: Environment = {};
    return superviseChild({
      name,
      args: [command, name],
      environment: () => environmentFor(name, env, { ...given, ...ports }),
      logFile: `${data.logs}/${name}.log`,
      onStarted: (pid) => events.onStarted(name, pid),
      onReady: (reported) => {
        for (const [listener, setting] of Object.entries(portSettings[name])) {
          ports[setting] = String(reported[listener] ?? 0);
        }
        if (name !== "worker") taken[name] = reported["public"] ?? 0;
        if (name === "api") taken.node = reported["node"] ?? 0;
      },
      report: events.report,
    });
  };
  const all = (["api", "gateway", "worker"] as const).map(supervise);
  return {
    ready: Promise.all(all.map((child) => child.firstReady)).then(() => taken),
    stop: async (how) => {
      await Promise.all(all.map((child) => child.stop(how)));
    },
  };
}
