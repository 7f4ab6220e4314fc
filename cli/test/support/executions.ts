// A whole installation that executes steps: its processes are real, its ports stay the same when one of them is restarted.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken, type ExecutionAgent, listAgents } from "@holdfast/contracts/endpoints/agents";
import { getMe } from "@holdfast/contracts/endpoints/me";
import type { DispatchBody } from "@holdfast/contracts/execution/dispatch";
import { databaseName, roles } from "@holdfast/control-plane/database/embedded/credentials";
import { socketUrl } from "@holdfast/control-plane/database/embedded/socket-url";
import { openSql, type Sql } from "@holdfast/control-plane/database/sql/sql";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { dispatchBody } from "../../../testkit/gateway/agents.ts";
import { DISPATCH_TOKEN } from "../../../testkit/gateway/gateway.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import {
  type Environment,
  type Installation,
  openInstallation,
  type Ready,
  type Started,
} from "../../../testkit/processes/holdfast.ts";

export type ExecutionSite = {
  installation: Installation;
  ready: Ready;
  internalUrl: string;
  org: string;
  /** The local operator. */
  call: Client;
  pairingToken(): Promise<string>;
  agents(): Promise<ExecutionAgent[]>;
  /** As a script does it that knows the wire only. */
  post(path: string): Promise<{ status: number; body: Record<string, unknown> }>;
};

/** `command`: of another copy of the product. */
export async function openExecutionSite(
  env: Environment = {},
  options: { command?: string } = {},
): Promise<ExecutionSite> {
  const installation = openInstallation(options);
  atEnd(() => installation.cleanUp());
  const [gateway, internal] = await freePorts<[number, number]>(2);
  const ready = await installation.up({
    HOLDFAST_UP_AGENT: "no",
    HOLDFAST_GATEWAY_PORT: String(gateway),
    HOLDFAST_GATEWAY_INTERNAL_PORT: String(internal),
    GATEWAY_SERVICE_TOKEN: DISPATCH_TOKEN,
    ...env,
  }).ready;
  const token = readFileSync(join(installation.dataDir, "operator-token"), "utf8").trim();
  const call = createClient({ baseUrl: ready.api_url, token });
  const org = (await call(getMe, {})).organizations[0]?.id ?? "";
  return {
    ...{ installation, ready, org, call, internalUrl: ready.gateway_internal_url },
    pairingToken: async () => (await call(createAgentPairingToken, { params: { org_id: org } })).token,
    agents: async () => (await call(listAgents, { params: { org_id: org } })).agents,
    async post(path) {
      const headers = { authorization: `Bearer ${token}`, "x-org-id": org };
      const response = await fetch(`${ready.api_url}${path}`, { method: "POST", headers });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
  };
}

/** The installation's database, for what only time can do. Closed after the file. */
export function openDatabaseOf({ dataDir }: Pick<Installation, "dataDir">): Sql {
  const directory = join(dataDir, "postgres");
  const { superuser: password } = JSON.parse(readFileSync(join(directory, "credentials.json"), "utf8")) as {
    superuser: string;
  };
  const sql = openSql({
    url: socketUrl({ user: roles.superuser, password, directory: join(directory, "run"), database: databaseName }),
    ...{ max: 1, application: "test", connectTimeoutSeconds: 60, parameters: { search_path: "holdfast" } },
  });
  atEnd(() => sql.end({ timeout: 1 }));
  return sql;
}

export type Host = {
  home: string;
  credentials: string;
  /** `holdfast agent connect`, with these arguments. */
  connect(args?: readonly string[]): Started;
};

/** A machine of somebody's, with a home of its own. */
export function newHost(installation: Pick<Installation, "start">): Host {
  const home = scratchDirectory();
  return {
    home,
    credentials: join(home, ".holdfast/agent.json"),
    connect: (args = []) => installation.start(["agent", "connect", ...args], { HOME: home, ...hostBackend }),
  };
}

export function shellStep(org: string, script: string, changes: Partial<DispatchBody> = {}): DispatchBody {
  const nodeId = `step-${randomBytes(4).toString("hex")}`;
  const config = { task: { type: "shell", script }, sandbox: { backend: "host" } };
  return dispatchBody(org, {
    ...{ nodeId, nodeType: "agent.execute", kind: "agent.execute" },
    payload: { nodeId, node: { id: nodeId, type: "agent.execute", config } },
    ...changes,
  });
}
