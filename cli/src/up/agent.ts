// This machine as a node of its own installation, by the same path as any other: a token created through
// the public API, the agent's own join, then `holdfast agent run`. Nothing here may keep the server
// from running: failures are printed and recorded for `holdfast status`.

import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { type Client, codeOf } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listOrganizations } from "@holdfast/contracts/endpoints/organizations";
import type { Environment } from "@holdfast/kit/settings";
import { readAgentFile } from "@holdfast/node-agent/identity/agent-file";
import { stateFiles } from "@holdfast/node-agent/identity/state-directory";
import { agentSettings } from "@holdfast/node-agent/settings";
import { clientOf, type Server } from "../client/connect.ts";
import { everyPage } from "../client/pages.ts";
import { urlOf } from "./addresses.ts";
import { type Child, superviseChild } from "./child.ts";
import { command } from "./children.ts";
import type { DataDirectory } from "./data-directory.ts";
import { type AllSettings, environmentFor } from "./settings.ts";
import { whenAborted } from "./stop-request.ts";
import type { AgentRecord } from "./up-file.ts";

export type LocalAgent = {
  /** As far as it is known. */
  record: AgentRecord;
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

type AgentOptions = {
  settings: AllSettings;
  env: Environment;
  data: DataDirectory;
  /** The public API, by the local operator's token. */
  server: Server;
  nodeApiUrl: string;
  onStarted(pid: number): void;
  onChanged(record: AgentRecord): void;
  /** Called when this machine has just been enrolled. */
  onJoined(name: string): void;
  report(text: string): void;
};

const JOIN_ATTEMPTS = 3;

/**
 * Returns immediately and works beside the server, which is usable without it: on a first start
 * loading the code and joining take 0.3 s of a start that should take four.
 */
export function startLocalAgent(options: AgentOptions): LocalAgent {
  const record = expectedAgent(options);
  let stopped = false;
  const change = (changes: Partial<AgentRecord>) => {
    Object.assign(record, changes);
    if (!stopped) options.onChanged(record);
  };
  const fail = (what: string) => (error: unknown) => {
    const { message, nextStep = "" } = error as Error & { nextStep?: string };
    const reason = `${message} ${nextStep}`.trim().replaceAll("\n", " ");
    change({ reason });
    if (!stopped) options.report(`${what}: ${reason}`);
  };
  const begin = async (): Promise<Child | undefined> => {
    try {
      const known = knownNode(record.state_dir);
      change(known ?? (await join(options, record.state_dir)));
      if (!known && !stopped) options.onJoined(record.node_name ?? "");
    } catch (error) {
      fail("This machine could not be enrolled as a node")(error);
      return undefined;
    }
    if (stopped) return undefined;
    const agent = await superviseAgent(options, record.state_dir, (url) => change({ url, reason: null }));
    agent.firstReady.catch(fail("This machine is a node, but its agent is not running"));
    return agent;
  };
  const begun = begin();
  return {
    record,
    async stop(how) {
      stopped = true;
      const agent = (await Promise.race([begun, whenAborted(how.hurry)])) as Child | undefined;
      await agent?.stop(how);
    },
  };
}

async function superviseAgent(
  options: AgentOptions,
  stateDir: string,
  onReady: (url: string) => void,
): Promise<Child> {
  let port = await portToUse(options);
  return superviseChild({
    name: "agent",
    args: [command, "agent", "run"],
    environment: () =>
      environmentFor("agent", options.env, {
        [agentSettings.stateDir.env]: stateDir,
        [agentSettings.port.env]: String(port),
        [agentSettings.nodeApiUrl.env]: options.nodeApiUrl,
      }),
    logFile: `${options.data.logs}/agent.log`,
    onStarted: options.onStarted,
    onReady: (ports) => {
      [port = port] = Object.values(ports);
      onReady(urlOf({ bind: options.settings.agent.bind, port, tls: false }));
    },
    report: options.report,
  });
}

/** What is known before it starts. */
export function expectedAgent({
  settings,
  env,
  data,
}: Pick<AgentOptions, "settings" | "env" | "data">): AgentRecord {
  const stateDir = env[agentSettings.stateDir.env] ? settings.agent.stateDir : data.agent;
  return { node_id: null, node_name: null, state_dir: stateDir, url: null, reason: null };
}

type KnownNode = { node_id: string; node_name: string };

function knownNode(stateDir: string): KnownNode | undefined {
  const files = stateFiles(stateDir);
  const agent = readAgentFile(files);
  return agent && existsSync(files.identity) ? { node_id: agent.node_id, node_name: agent.node_name } : undefined;
}

/** Uses the agent's own join. A machine that has lost its key is enrolled again as the same node. */
async function join(options: AgentOptions, stateDir: string): Promise<KnownNode> {
  const [agent, { detectHost }, { version }] = await Promise.all([
    import("@holdfast/node-agent/identity/join"),
    import("@holdfast/node-agent/host/facts"),
    import("@holdfast/service/version"),
  ]);
  const before = readAgentFile(stateFiles(stateDir));
  const { token, isNew } = await makeToken(options.server, before?.node_id);
  const advertisedAddress = options.settings.agent.advertiseAddress ?? null;
  const facts = detectHost({ agentVersion: version, stateDir, advertisedAddress }).hostFacts();
  const { nodeApiUrl: apiUrl } = options;
  const { nodeName } = options.settings.agent;
  const joined = await agent.join({
    token,
    apiUrl,
    stateDir,
    nodeName,
    facts,
    force: isNew,
    attempts: JOIN_ATTEMPTS,
  });
  return { node_id: joined.nodeId, node_name: joined.nodeName };
}

/** For the node that this machine was, if it still exists on the server; otherwise for a new one. */
async function makeToken(server: Server, nodeId: string | undefined): Promise<{ token: string; isNew: boolean }> {
  const anywhere = clientOf({ ...server, orgId: undefined });
  const organizations = await everyPage((cursor) =>
    anywhere(listOrganizations, { query: { cursor, limit: 200 } }),
  );
  const client = clientOf({ ...server, orgId: organizations.at(-1)?.id });
  const made = nodeId === undefined ? undefined : await tokenFor(client, nodeId);
  if (made !== undefined) return { token: made, isNew: false };
  const { token } = await client(createEnrollmentToken, { body: {} });
  return { token, isNew: true };
}

async function tokenFor(client: Client, nodeId: string): Promise<string | undefined> {
  try {
    return (await client(createEnrollmentToken, { body: { node_id: nodeId } })).token;
  } catch (error) {
    if (["not_found", "node_retired"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** The default port may be in use; unless it was set explicitly, any free port will do. */
async function portToUse({ settings, env }: AgentOptions): Promise<number> {
  const { port, bind } = settings.agent;
  if (env[agentSettings.port.env] || (await isFree(port, bind))) return port;
  return 0;
}

function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
