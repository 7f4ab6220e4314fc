// Two gateways with a Redis behind nginx as deploy/nginx configures it, restarted one after the other while ten shells of a
// real agent are open and used by real clients: no shell ends, and nothing that was typed or printed is lost.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createAllocation, getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { listTerminals } from "@holdfast/contracts/endpoints/terminals";
import { openTerminalClient } from "@holdfast/terminal-client/client";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { join as joinAs } from "../../../node-agent/src/identity/join.ts";
import { lacks } from "../../../scripts/facilities.mjs";
import { startTestAgent } from "../../../testkit/agent/agent.ts";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../../testkit/api/api.ts";
import { SERVICE_TOKEN } from "../../../testkit/gateway/api.ts";
import { startTestGateway, type TestGateway } from "../../../testkit/gateway/gateway.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { startTestRedis, type TestRedis } from "../../../testkit/redis/redis.ts";
import { testUser } from "../../../testkit/tasks/os-users.ts";
import { commandEnvironment } from "../../src/commands/terminal/environment.ts";
import { aPerson } from "../support/command.ts";
import { type Nginx, prepareNginx } from "../support/nginx.ts";

const SHELLS = 10;
const PATIENT = { timeout: 100_000 };
const INGRESS_TOKEN = randomBytes(32).toString("hex");
const without = lacks("root") || lacks("nginx") || lacks("redis");

let api: TestApi;
let redis: TestRedis;
let nginx: Nginx;
let org: TestOrg;
let token: string;
let allocationId: string;
const ports: { public: number; node: number }[] = [];
const gateways: TestGateway[] = [];

const startGateway = (at: { public: number; node: number }) =>
  startTestGateway(
    { url: api.internalUrl },
    {
      HOLDFAST_GATEWAY_PORT: String(at.public),
      HOLDFAST_NODE_TERMINAL_PORT: String(at.node),
      HOLDFAST_GATEWAY_PUBLIC_URL: `https://localhost:${nginx.ports.public}`,
      HOLDFAST_NODE_TERMINAL_URL: `https://localhost:${nginx.ports.nodeTerminals}`,
      HOLDFAST_TRUSTED_PROXIES: "127.0.0.1",
      HOLDFAST_REDIS_URL: redis.url,
    },
  );

beforeAll(async () => {
  if (without) return;
  const [apiPort, nodePort, ...rest] = await freePorts<[number, number, number, number, number, number]>(6);
  ports.push({ public: rest[0], node: rest[1] }, { public: rest[2], node: rest[3] });
  redis = await startTestRedis();
  nginx = await prepareNginx(
    {
      ...{ nodeApis: [nodePort], apis: [apiPort] },
      ...{ gateways: [rest[1], rest[3]], publicGateways: [rest[0], rest[2]] },
    },
    "localhost",
  );
  api = await startTestApi({
    env: {
      HOLDFAST_API_PORT: String(apiPort),
      HOLDFAST_NODE_API_PORT: String(nodePort),
      HOLDFAST_NODE_TERMINAL_URL: `https://localhost:${nginx.ports.nodeTerminals}`,
      HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
      HOLDFAST_INGRESS_TOKEN: INGRESS_TOKEN,
      HOLDFAST_TERMINAL_OPEN_SECONDS: "29",
    },
  });
  await aPerson({
    HOLDFAST_API_INTERNAL_URL: api.internalUrl,
    HOLDFAST_INGRESS_TOKEN: INGRESS_TOKEN,
    HOLDFAST_INGRESS_DIR: nginx.certificates,
  }).json(["ingress", "--once"]);
  await nginx.start();
  for (const at of ports) gateways.push(await startGateway(at));
  org = await createOrg(api, "kelp");
  token = await tokenFor(api, org, "admin");
  allocationId = await allocationOnAgent();
});

/** A user of this machine, made by a real agent that has joined. */
async function allocationOnAgent(): Promise<string> {
  const client = api.as(token);
  const enrollment = await client(createEnrollmentToken, { body: {} });
  const stateDir = scratchDirectory();
  const place = { token: enrollment.token, apiUrl: enrollment.api_url, stateDir, facts: someFacts };
  const { nodeId } = await joinAs(place);
  await startTestAgent({ stateDir });
  const status = async () => (await client(getNode, { params: { node_id: nodeId } })).status;
  await until(async () => (await status()) === "active");
  const { username } = testUser();
  const { id } = await client(createAllocation, { body: { node_id: nodeId, username } });
  const made = async () => (await client(getAllocation, { params: { allocation_id: id } })).status;
  await until(async () => (await made()) === "active");
  return id;
}

/** A person at a terminal. */
function sitDown() {
  const certificateFile = join(nginx.certificates, "listener.pem");
  let shown = "";
  const client = openTerminalClient<Buffer>({
    shell: undefined,
    environment: commandEnvironment(api.as(token), { url: api.url, token, certificateFile }, { allocationId }),
    display: {
      start: () => undefined,
      write(bytes, done) {
        shown += bytes.toString();
        done();
      },
    },
    onState: () => undefined,
  });
  client.resize({ cols: 200, rows: 24 });
  atEnd(() => client.leave());
  return {
    client,
    phase: () => client.state().phase,
    /** Types a command, also while the terminal is being reconnected, and returns what it printed. */
    async ask(command: string): Promise<string> {
      const mark = randomBytes(6).toString("hex");
      client.write(Buffer.from(`echo {$(${command})}${mark.slice(0, 6)}''${mark.slice(6)}\r`));
      const answer = new RegExp(`\\{([^{}]*)\\}${mark}`);
      await expect.poll(() => shown, PATIENT).toMatch(answer);
      return answer.exec(shown)?.[1] ?? "";
    },
  };
}

describe.skipIf(without)("two gateways behind nginx", () => {
  it("OPS-02 TERM-07 TERM-11 are restarted one after the other under open shells, and no shell ends", async () => {
    const people = Array.from({ length: SHELLS }, sitDown);
    for (const { phase } of people) await expect.poll(phase, PATIENT).toBe("ready");
    const shells = await Promise.all(people.map(({ ask }) => ask("echo $$")));
    expect(new Set(shells).size).toBe(SHELLS);
    const held = (gateway: TestGateway) => gateway.metric("holdfast_gateway_held", "bindings");
    expect((await Promise.all(gateways.map(held))).reduce((sum, one) => sum + one)).toBe(SHELLS);
    for (const [index, at] of ports.entries()) {
      const others = gateways.filter((_, other) => other !== index);
      await gateways[index]?.stop();
      // Everybody goes on at the other one, before this one is back.
      expect(await Promise.all(people.map(({ ask }) => ask("echo $$")))).toEqual(shells);
      for (const other of others) expect(await held(other)).toBe(SHELLS);
      gateways[index] = await startGateway(at);
    }
    for (const { phase } of people) expect(phase()).toBe("ready");
    const { items } = await api.as(token)(listTerminals, { query: {} });
    expect(items.map(({ state }) => state)).toEqual(Array.from({ length: SHELLS }, () => "open"));
    await expect.poll(async () => Object.keys(await redis.content()).length).toBe(SHELLS);
  });

  it("TERM-07 open terminals behind nginx without Redis, too: a stream that one refuses is taken by the other", async () => {
    await redis.stop();
    onTestFinished(() => redis.start());
    const reachable = (gateway: TestGateway) => gateway.metric("holdfast_gateway_store_reachable", "redis");
    for (const gateway of gateways) await expect.poll(() => reachable(gateway), PATIENT).toBe(0);
    // So many that some of their streams reach the wrong gateway first.
    const people = Array.from({ length: 4 }, sitDown);
    for (const { phase } of people) await expect.poll(phase, PATIENT).toBe("ready");
    const shells = await Promise.all(people.map(({ ask }) => ask("echo $$")));
    expect(new Set(shells).size).toBe(people.length);
  });
});
