// A new noun is a folder, the file of its endpoints, and one line in modules.ts. It is added to a copy of the repository,
// from which an api and a worker are started: they must serve its routes, publish its changes, run its job and read its
// settings, and nothing else may change.

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient } from "@holdfast/contracts/client";
import { type BackgroundJob, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { createProject } from "@holdfast/contracts/endpoints/projects";
import { ORG_HEADER } from "@holdfast/contracts/headers";
import { LIVE_PATH } from "@holdfast/contracts/public/live";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { addMember, createOrg, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode } from "../../testkit/api/nodes.ts";
import { createTestDatabase } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { copyRepository, type RepositoryCopy } from "../../testkit/tasks/repository-copy.ts";
import { loginEnvironment } from "../src/database/settings.ts";

const endpoints = `// Greetings of an organization's projects.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id } from "../fields.ts";

export const sayGreeting = endpoint({
  name: "sayGreeting",
  noun: "greetings",
  method: "POST",
  path: "/v1/greetings",
  summary: "Greet a project",
  access: { scope: "projects:read" },
  action: "greeting.say",
  body: z.strictObject({ project_id: Id }),
  answer: z.strictObject({ text: z.string() }),
});

export const getNodeGreeting = endpoint({
  name: "getNodeGreeting",
  noun: "node_api",
  method: "GET",
  path: "/internal/v1/nodes/{node_id}/greeting",
  summary: "What a node is greeted with",
  access: "node",
  params: z.strictObject({ node_id: Id }),
  answer: z.strictObject({ text: z.string() }),
});

export const getGatewayGreeting = endpoint({
  name: "getGatewayGreeting",
  noun: "service_api",
  method: "GET",
  path: "/internal/v1/greeting",
  summary: "What a gateway is greeted with",
  access: "service",
  answer: z.strictObject({ text: z.string() }),
});
`;

const module = `// Greetings, for a test.

import { integer, kinds, setting } from "@holdfast/kit/settings";
import { defineModule } from "../module.ts";

declare module "../mechanisms/signals.ts" {
  interface Topics {
    /** Ids of greeted projects. */
    greeting: true;
  }
}

export const greetings = defineModule({
  name: "greetings",
  apiSettings: {
    greetingText: setting(kinds.text, {
      env: "HOLDFAST_GREETING_TEXT",
      default: "Hello",
      help: "What projects and nodes are greeted with.",
    }),
  },
  workerSettings: {
    greetingSeconds: setting(integer({ min: 1, max: 60 }), {
      env: "HOLDFAST_GREETING_SECONDS",
      default: 60,
      help: "How often projects are counted.",
    }),
  },
  publicRoutes: async (api) => (await import("./routes.ts")).greetingRoutes(api),
  nodeRoutes: async (nodeApi) => (await import("./routes.ts")).nodeGreetingRoutes(nodeApi),
  internalRoutes: async (internalApi) => (await import("./routes.ts")).gatewayGreetingRoutes(internalApi),
  liveTopics: [
    {
      topic: "greeting",
      scope: "projects:read",
      signal: "greeting",
      select: (system, ids) => system\`
        SELECT id, org_id, NULL AS node_id, NULL AS allocation, NULL AS user_key, now() AS read_at
        FROM projects WHERE id = ANY(\${ids}::uuid[])\`,
    },
  ],
  jobs: [
    {
      name: "count-projects",
      every: ({ settings }) => settings.greetingSeconds,
      wakeOn: ["greeting"],
      runsIn: "one worker",
      run: async ({ system }) => ({ projects: (await system\`SELECT FROM projects WHERE slug = 'work'\`).length }),
    },
    {
      name: "check-greeting",
      every: 1,
      runsIn: "each api",
      run: async ({ settings }) => ({ letters: settings.greetingText.length }),
    },
  ],
});
`;

const routes = `// Greetings over HTTP.

import { getGatewayGreeting, getNodeGreeting, sayGreeting } from "@holdfast/contracts/endpoints/greetings";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import { type NodeApi, nodeRoute } from "../node-api/route.ts";
import { type InternalApi, internalRoute } from "../internal-api/route.ts";

export function greetingRoutes(api: ApiContext): void {
  orgRoute(api, sayGreeting, async ({ body, org, touched, afterCommit }) => {
    touched({ type: "greeting", id: body.project_id });
    afterCommit(() => api.signals.publish("greeting", [body.project_id]));
    return { text: \`Hello \${org.id}\` };
  });
}

export function nodeGreetingRoutes(nodeApi: NodeApi): void {
  nodeRoute(nodeApi, getNodeGreeting, async ({ node }) => ({ text: \`Hello \${node.id}\` }));
}

export function gatewayGreetingRoutes(internalApi: InternalApi): void {
  internalRoute(internalApi, getGatewayGreeting, async ({ service }) => ({ text: \`Hello \${service.name}\` }));
}
`;

const added: Record<string, string> = {
  "contracts/src/endpoints/greetings.ts": endpoints,
  "control-plane/src/greetings/module.ts": module,
  "control-plane/src/greetings/routes.ts": routes,
};
const LIST = "control-plane/src/modules.ts";
const A_WHILE = 300_000;

let copy: RepositoryCopy;
let before: Map<string, string>;

beforeAll(async () => {
  copy = await copyRepository();
  await copy.run(process.execPath, "scripts/generate.ts");
  before = copy.digests();
  for (const [path, text] of Object.entries(added)) {
    mkdirSync(join(copy.path, path, ".."), { recursive: true });
    writeFileSync(join(copy.path, path), text);
  }
  appendFileSync(join(copy.path, LIST), 'export { greetings } from "./greetings/module.ts";\n');
}, A_WHILE);

describe("a new noun in the processes", () => {
  let api: TestApi;
  let org: TestOrg;
  let projectId: string;

  beforeAll(async () => {
    api = await startFromCopy();
    org = await createOrg(api, "greeted");
    const made = await api.operator(org.id)(createProject, { body: { slug: "work", name: "Work" } });
    projectId = made.id;
  }, A_WHILE);

  const say = async () =>
    fetch(`${api.url}/v1/greetings`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${api.operatorToken}`,
        [ORG_HEADER]: org.id,
      },
      body: JSON.stringify({ project_id: projectId }),
    });

  it("has its public and its node-facing route", async () => {
    const answer = await say();
    expect(await answer.json()).toEqual({ text: `Hello ${org.id}` });
    const node = await enrollTestNode(api, org.id);
    const greeted = await node.client.ask({ path: node.path("greeting") });
    expect(greeted).toMatchObject({ status: 200, body: { text: `Hello ${node.id}` } });
    const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths)).toContain("/v1/greetings");
  });

  it("is published to open pages", async () => {
    const member = await addMember(api, org, "reader@greeted.example", "member");
    const url = `${api.url.replace("http", "ws")}${LIVE_PATH}?org_id=${org.id}`;
    const socket = new WebSocket(url, { headers: { cookie: member.cookie }, origin: api.url });
    atEnd(() => socket.terminate());
    await once(socket, "open");
    const message = once(socket, "message");
    await say();
    const [data] = await message;
    expect(JSON.parse(String(data))).toEqual({
      type: "changed",
      topic: "greeting",
      ids: [projectId],
      node_ids: [],
    });
  });

  it("has its jobs run by worker and api, with its settings", async () => {
    await startProcess("worker", { ...environment(api), HOLDFAST_GREETING_SECONDS: "1" }, "worker runs");
    const jobs = async () => (await api.operator()(getPlatformStatus, {})).jobs;
    const expected = [
      { name: "check-greeting", runs_in: "each api", last_result: { letters: 5 } },
      { name: "count-projects", runs_in: "one worker", every_seconds: 1, last_result: { projects: 1 } },
    ];
    const shown = (all: readonly BackgroundJob[]) =>
      expected.map(({ name }) => all.find((job) => job.name === name) ?? {});
    await expect.poll(async () => shown(await jobs())).toMatchObject(expected);
  });
});

describe("a new noun in the repository", () => {
  it("changes nothing but its line in the list, and is in the references", async () => {
    await copy.run(process.execPath, "scripts/generate.ts");
    const after = copy.digests();
    const touched = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path) !== after.get(path),
    );
    const generated = ["docs/reference/openapi.json", "docs/reference/settings.md"];
    expect(touched.toSorted()).toEqual([...Object.keys(added), LIST, ...generated].toSorted());
    const settings = readFileSync(join(copy.path, "docs/reference/settings.md"), "utf8");
    expect(settings).toMatch(/## `HOLDFAST_GREETING_TEXT`\n\n.*\n\n- Read by: api\n/);
    expect(settings).toMatch(/## `HOLDFAST_GREETING_SECONDS`\n\n.*\n\n- Read by: worker\n/);
  });

  it(
    "keeps to the boundaries and the types",
    async () => {
      const boundaries = await copy.run(process.execPath, "scripts/check-boundaries.ts");
      expect(boundaries.output, "it looked").toMatch(/^\d+ modules, \d+ violations$/m);
      const types = await copy.typeErrors("contracts/src", "control-plane/src");
      const about = [...boundaries.output.split("\n"), ...types].filter((line) =>
        /greetings|modules\.ts/.test(line),
      );
      expect(about).toEqual([]);
    },
    A_WHILE,
  );
});

const KEK = randomBytes(32).toString("base64");
const operatorToken = `hfo_${randomBytes(32).toString("base64url")}`;

function environment({ database }: Pick<TestApi, "database">): Record<string, string> {
  return {
    ...loginEnvironment(database),
    HOLDFAST_API_PORT: "0",
    HOLDFAST_NODE_API_PORT: "0",
    HOLDFAST_API_INTERNAL_PORT: "0",
    HOLDFAST_SERVICE_TOKEN: randomBytes(32).toString("hex"),
    HOLDFAST_KEK_BASE64: KEK,
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(operatorToken).digest("hex"),
  } as Record<string, string>;
}

async function startFromCopy(): Promise<TestApi> {
  const database = await createTestDatabase();
  const listens = await startProcess("api", environment({ database }), "api listens");
  const url = `http://127.0.0.1:${listens["port"]}`;
  const as = (token: string, orgId?: string) => createClient({ baseUrl: url, token, orgId });
  return {
    ...{ url, nodeUrl: `https://127.0.0.1:${listens["node_port"]}`, internalUrl: "", database, operatorToken, as },
    operator: (orgId) => as(operatorToken, orgId),
    logged: () => "",
    stop: async () => undefined,
  };
}

/** Resolves with the log line that says it is there. */
async function startProcess(
  name: string,
  env: Record<string, string>,
  line: string,
): Promise<Record<string, unknown>> {
  const child: ChildProcess = spawn(process.execPath, ["cli/bin/holdfast.mjs", name], {
    cwd: copy.path,
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  atEnd(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  const output: string[] = [];
  child.stderr?.on("data", (chunk) => output.push(String(chunk)));
  const ready = Promise.withResolvers<Record<string, unknown>>();
  void ended.then(() => ready.reject(new Error(`${name} ended:\n${output.join("\n")}`)));
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (text) => {
    output.push(text);
    const parsed = JSON.parse(text) as Record<string, unknown>;
    if (parsed["msg"] === line) ready.resolve(parsed);
  });
  return ready.promise;
}
