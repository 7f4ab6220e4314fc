// Two apis and two workers over one database behind nginx, restarted one after the other while people make tasks
// and real agents run them, one over a stream and one by polling: nobody's request fails, and every task runs once.

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { loginEnvironment } from "@holdfast/control-plane/database/settings";
import noop from "@holdfast/tasks/node.noop/contract";
import { beforeAll, describe, expect, it } from "vitest";
import { join } from "../../../node-agent/src/identity/join.ts";
import { lacks } from "../../../scripts/facilities.mjs";
import { startTestAgent, type TestAgent } from "../../../testkit/agent/agent.ts";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { openClient, type TestClient } from "../../../testkit/api/nodes.ts";
import { createTestDatabase, openRoles, type TestDatabase } from "../../../testkit/database/database.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { aPerson } from "../support/command.ts";
import { type Nginx, prepareNginx } from "../support/nginx.ts";

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
const OPERATOR = `hfo_${randomBytes(32).toString("base64url")}`;
const INGRESS_TOKEN = randomBytes(32).toString("hex");
/** Longer than a busy machine may keep the test from looking. */
const DRAIN_SECONDS = 8;
const LINKS = ["stream", "poll"] as const;
const without = lacks("nginx");

type Ports = { public: number; node: number; internal: number };
type Api = { ports: Ports; child: ChildProcess };

let database: TestDatabase;
let nginx: Nginx;
let people: TestClient;
const apis: Api[] = [];
const workers: ChildProcess[] = [];
const agents: { nodeId: string; agent: TestAgent }[] = [];
/** How often each task ran, by what it echoes. */
const runs = new Map<string, number>();

beforeAll(async () => {
  if (without) return;
  database = await createTestDatabase();
  const [a, b, c, d, e, f] = await freePorts<[number, number, number, number, number, number]>(6);
  const places: Ports[] = [
    { public: a, node: b, internal: c },
    { public: d, node: e, internal: f },
  ];
  nginx = await prepareNginx({ nodeApis: [b, e], apis: [a, d] }, "localhost");
  for (const ports of places) apis.push({ ports, child: startApi(ports) });
  for (let count = 0; count < 2; count += 1) workers.push(startWorker());
  for (const { ports } of apis) await until(async () => (await readyz(ports)).status === 200);
  await aPerson({
    HOLDFAST_API_INTERNAL_URL: `https://127.0.0.1:${c}`,
    HOLDFAST_INGRESS_TOKEN: INGRESS_TOKEN,
    HOLDFAST_INGRESS_DIR: nginx.certificates,
  }).json(["ingress", "--once"]);
  await nginx.start();
  const client = createClient({ baseUrl: `http://127.0.0.1:${a}`, token: OPERATOR });
  for (const link of LINKS) {
    const { token, api_url } = await client(createEnrollmentToken, { body: {} });
    const stateDir = scratchDirectory();
    const { nodeId } = await join({ token, apiUrl: api_url, stateDir, facts: someFacts });
    const env = { HOLDFAST_AGENT_LINK: link };
    const agent = await startTestAgent({ stateDir }, { env, loadType: async () => counting });
    agents.push({ nodeId, agent });
    const params = { node_id: nodeId };
    await until(async () => {
      const node = await client(getNode, { params });
      return node.status === "active" && node.link === link;
    });
  }
  // Not verified: whose certificate people see in front of them is not the matter here.
  people = openClient(`https://localhost:${nginx.ports.public}`, { rejectUnauthorized: false, maxSockets: 8 });
});

const counting = {
  contract: noop,
  executor: {
    run: async ({ params }: { params: unknown }) => {
      const { echo = "" } = params as { echo?: string };
      runs.set(echo, (runs.get(echo) ?? 0) + 1);
      return { echo };
    },
  },
};

function startApi(ports: Ports): ChildProcess {
  return start("api", {
    HOLDFAST_API_PORT: String(ports.public),
    HOLDFAST_NODE_API_PORT: String(ports.node),
    HOLDFAST_API_INTERNAL_PORT: String(ports.internal),
    HOLDFAST_NODE_API_URL: `https://localhost:${nginx.ports.nodeApi}`,
    HOLDFAST_PUBLIC_URL: `https://localhost:${nginx.ports.public}`,
    HOLDFAST_TRUSTED_PROXIES: "127.0.0.1",
    HOLDFAST_KEK_BASE64: Buffer.alloc(32, 9).toString("base64"),
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(OPERATOR).digest("hex"),
    HOLDFAST_INGRESS_TOKEN: INGRESS_TOKEN,
    HOLDFAST_MIGRATE_ON_START: "no",
    HOLDFAST_DATABASE_POOL_SIZE: "4",
    HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "0",
    HOLDFAST_DRAIN_SECONDS: String(DRAIN_SECONDS),
  });
}

const startWorker = () => start("worker", { HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS: "1" });

function start(name: string, env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [command, name], {
    env: { PATH: process.env["PATH"], ...loginEnvironment(database), ...env },
    stdio: ["ignore", "ignore", "inherit"],
  });
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await once(child, "exit");
  });
  return child;
}

/** Of one api, past nginx. */
async function readyz({ public: port }: Ports): Promise<{ status: number; draining: boolean }> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: "close" } });
    const { checks } = (await response.json()) as { checks: Record<string, unknown> };
    return { status: response.status, draining: "draining" in checks };
  } catch {
    return { status: 0, draining: false };
  }
}

/** How many agents have a stream to this api. */
async function streamsAt({ public: port }: Ports): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: "close" } });
  const [, count] = /^holdfast_node_connections\{.*reason="stream".*\} (\d+)$/m.exec(await response.text()) ?? [];
  return Number(count);
}

type Load = { made: string[]; failed: string[]; stop(): Promise<void> };

/** Makes tasks by the public name and waits for the end of each, from several hands. */
function putUnderLoad(hands: number): Load {
  const [made, failed]: [string[], string[]] = [[], []];
  let stopped = false;
  const ask: TestClient["ask"] = async (request) => {
    const headers = { ...request.headers, authorization: `Bearer ${OPERATOR}` };
    const answer = await people.ask({ ...request, headers });
    if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
    return answer;
  };
  const work = async (hand: number) => {
    for (let count = 0; !stopped; count += 1) {
      const { nodeId } = agents[count % agents.length] ?? { nodeId: "" };
      const echo = `${hand}-${count}`;
      try {
        const body = { type: "node.noop", params: { echo } };
        // As the web app and the command line send it.
        const headers = { "idempotency-key": echo };
        const { body: task } = await ask({ method: "POST", path: `/v1/nodes/${nodeId}/tasks`, body, headers });
        made.push(echo);
        let { status } = task as { status: string };
        while (status === "queued" || status === "dispatched") {
          const { body: now } = await ask({ path: `/v1/tasks/${task["id"]}?wait_seconds=20&until=end` });
          status = String(now["status"]);
        }
        if (status !== "completed") throw new Error(`task ${task["id"]} is ${status}`);
      } catch (error) {
        failed.push(`${echo}: ${(error as Error).message}`);
      }
      await wait(20);
    }
  };
  const all = Array.from({ length: hands }, (_, hand) => work(hand));
  return {
    made,
    failed,
    async stop() {
      stopped = true;
      await Promise.all(all);
    },
  };
}

describe.skipIf(without)("two apis and two workers behind nginx", () => {
  it("OPS-02 are restarted one after the other under load without a failed request, a lost or a doubled task", async () => {
    const load = putUnderLoad(3);
    for (const [index, api] of apis.entries()) {
      const before = load.made.length;
      await expect.poll(() => load.made.length).toBeGreaterThan(before + 20);
      const gone = once(api.child, "exit");
      api.child.kill("SIGTERM");
      // Says so first, and serves all the same.
      await expect.poll(() => readyz(api.ports), { interval: 20 }).toEqual({ status: 503, draining: true });
      workers[index]?.kill("SIGTERM");
      // The agent has a stream to the other one before this one stops.
      const other = apis.find((one) => one !== api) ?? api;
      await expect.poll(() => streamsAt(other.ports), { interval: 20 }).toBe(1);
      expect(api.child.exitCode).toBeNull();
      expect(await gone).toEqual([0, null]);
      api.child = startApi(api.ports);
      workers[index] = startWorker();
      await expect.poll(() => readyz(api.ports)).toMatchObject({ status: 200 });
    }
    const before = load.made.length;
    await expect.poll(() => load.made.length).toBeGreaterThan(before + 20);
    await load.stop();

    expect(load.failed, nginx.errors().slice(-20_000)).toEqual([]);
    const doubled = load.made.filter((echo) => runs.get(echo) !== 1);
    expect(doubled).toEqual([]);
    const { superuser } = openRoles(database);
    const rows = await superuser`SELECT status, count(*)::int AS count FROM tasks GROUP BY status`;
    expect(rows).toEqual([{ status: "completed", count: load.made.length }]);
    for (const { agent } of agents) {
      expect(agent.logged()).not.toMatch(/"level":"(warn|error)"/);
      expect((await agent.get("/metrics")).text).toContain("holdfast_agent_polls_failed_total 0");
    }
  });

  it("OPS-02 wake each other: a task made at one is taken at once from the other, where its node waits", async () => {
    for (const { ports } of apis) {
      for (const { nodeId } of agents) {
        const port = ports.public;
        const made = await fetch(`http://127.0.0.1:${port}/v1/nodes/${nodeId}/tasks`, {
          method: "POST",
          headers: { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json" },
          body: JSON.stringify({ type: "node.noop", params: { echo: `${port}-${nodeId}` } }),
        });
        const { id } = (await made.json()) as { id: string };
        const path = `/v1/tasks/${id}?wait_seconds=20&until=end`;
        const { body } = await people.ask({ path, headers: { authorization: `Bearer ${OPERATOR}` } });
        expect(body).toMatchObject({ status: "completed" });
      }
    }
  });
});
