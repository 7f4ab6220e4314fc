// A node of a lab: a host with an agent on it, run as `holdfast agent run`, that joined by its bootstrap token.

import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Client } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import type { AgentPicture } from "@holdfast/node-agent/diagnostics/explain";
import { PATIENCE_SECONDS, until, within } from "../until.ts";
import { holdfast } from "./command.ts";
import type { NetworkHost } from "./network.ts";
import { type Line, type RunningProgram, start } from "./program.ts";

const execute = promisify(execFile);

export type LabNode = NetworkHost & {
  id: string;
  name: string;
  stateDir: string;
  /** What `holdfast agent …` is run with on the host. */
  environment: Record<string, string>;
  agent(): RunningProgram;
  /** Of its agents, those that have ended included. */
  lines(): Line[];
  /** As an operator stops its service. One that polls is stopped while its poll is held: only then does the server see its end. */
  stopAgent(): Promise<void>;
  /** With the same settings; with another build if one is named. */
  startAgent(options?: { command?: string; env?: Record<string, string> }): void;
  /** `holdfast agent …` on the host, as its operator would type it. */
  holdfast(args: readonly string[], env?: Record<string, string>): Promise<string>;
  diagnose(): Promise<AgentPicture>;
};

export type NodeOptions = {
  place: NetworkHost;
  directory: string;
  operator: Client;
  /** For its agent, beyond the usual. */
  env?: Record<string, string>;
  /** Keeps its state on a file system of this size, which only the host sees. */
  stateMegabytes?: number;
  /** With the default pace of heartbeats. */
  asByDefault?: boolean;
  /** Resolves when the next poll of this node is held. Undefined: it keeps a stream. */
  pollHeld?: ((nodeId: string) => Promise<unknown>) | undefined;
};

/** Short, so that scenarios are short: a node sends a heartbeat every two seconds. */
const HEARTBEAT_SECONDS = "2";
/** Of an agent that is stopped while its poll is held: the poll lasts longer than a busy machine needs to stop it. */
export const LONG_POLLS = { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "6" };

export async function openNode({ place, directory, operator, ...options }: NodeOptions): Promise<LabNode> {
  const { host } = place;
  const stateDir = join(directory, host.name, "state");
  mkdirSync(stateDir, { mode: 0o700 });
  if (options.stateMegabytes !== undefined) {
    const size = `size=${options.stateMegabytes}m,mode=700`;
    await host.run("mount", "-t", "tmpfs", "-o", size, "tmpfs", stateDir);
  }
  const body = { kind: "bootstrap" as const, node_name: host.name };
  const { token, api_url } = await operator(createEnrollmentToken, { body });
  const plain = {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    ...(options.asByDefault ? {} : { HOLDFAST_AGENT_HEARTBEAT_SECONDS: HEARTBEAT_SECONDS }),
    // How full the machine's own disk is, is no matter of the lab.
    HOLDFAST_NODE_DISK_PRESSURE_PERCENT: "99",
  };
  // Only to join: an agent that has it would repair by itself what some scenarios break.
  const joining = { HOLDFAST_BOOTSTRAP_TOKEN: token, HOLDFAST_NODE_API_URL: api_url };
  const launch = (command: string, more: Record<string, string> = {}) =>
    start({
      host,
      name: `agent on ${host.name}`,
      command: [process.execPath, command, "agent", "run"],
      env: { ...plain, HOLDFAST_AGENT_LOG_LEVEL: "debug", ...options.env, ...more },
      logFile: join(directory, `agent-${host.name}.log`),
    });
  const agents = [launch(holdfast, joining)];
  const agent = () => agents.at(-1) as RunningProgram;
  const id = await until(`${host.name} is online`, PATIENCE_SECONDS, async () => {
    const { items } = await operator(listNodes, { query: { name: host.name } });
    return items.find(({ connection, status }) => connection === "online" && status === "active")?.id;
  });
  const onHost: LabNode["holdfast"] = async (args, more = {}) => {
    const [program = "", ...words] = [...host.enter, process.execPath, holdfast, "agent", ...args];
    const settings = { PATH: process.env["PATH"] ?? "", HOME: "/root", ...plain, ...options.env, ...more };
    // Exit code 1 says that something is wrong, which is what scenarios ask for.
    const { stdout } = await execute(program, words, { cwd: "/", env: settings }).catch(
      (error: { code?: unknown; stdout?: string }) => {
        if (error.code !== 1 || error.stdout === undefined) throw error;
        return { stdout: error.stdout };
      },
    );
    return stdout;
  };
  return {
    ...place,
    id,
    name: host.name,
    stateDir,
    environment: { ...plain, ...options.env },
    agent,
    lines: () => agents.flatMap((one) => one.lines()),
    async stopAgent() {
      const held = Promise.race([options.pollHeld?.(id), agent().ended]);
      await within(`a poll of ${host.name} is held`, PATIENCE_SECONDS, held);
      await agent().stop();
    },
    startAgent({ command = holdfast, env = {} } = {}) {
      agents.push(launch(command, env));
    },
    holdfast: onHost,
    diagnose: async () => JSON.parse(await onHost(["diagnose", "--json"])) as AgentPicture,
  };
}
