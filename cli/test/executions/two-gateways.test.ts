// One api, one worker and two gateways with a Redis, all as processes of their own, and agents that reach either gateway
// through one address. What ran is counted by a file that no process of the product knows.

import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken, listAgents } from "@holdfast/contracts/endpoints/agents";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { loginEnvironment } from "@holdfast/control-plane/database/settings";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createTestDatabase } from "../../../testkit/database/database.ts";
import { dispatch, dispatchAsync, resultOf } from "../../../testkit/gateway/agents.ts";
import { SERVICE_TOKEN } from "../../../testkit/gateway/api.ts";
import { DISPATCH_TOKEN } from "../../../testkit/gateway/gateway.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { answers, openInstallation, type Started, until } from "../../../testkit/processes/holdfast.ts";
import { startTestRedis, type TestRedis } from "../../../testkit/redis/redis.ts";
import { newHost, shellStep } from "../support/executions.ts";
import { createDispatcher } from "../torture/dispatcher.ts";

const RUNNING = 30;
const LANES = 3;
const LONG = { timeoutMs: 300_000, waitMs: 300_000 };
const OPERATOR = `hfo_${randomBytes(32).toString("base64url")}`;
const without = lacks("redis");

type Gateway = { url: string; internalUrl: string; process: Started; restart(): Started };

const installation = openInstallation();
atEnd(() => installation.cleanUp());
const trace = join(scratchDirectory(), "trace");
const gateways: Gateway[] = [];
let redis: TestRedis;
let balancer: { port: number; lead(ports: readonly number[]): void };
let apiUrl: string;
let org: string;

beforeAll(async () => {
  if (without) return;
  writeFileSync(trace, "");
  const database = await createTestDatabase();
  redis = await startTestRedis();
  balancer = await startBalancer();
  const [api, internal, ...rest] = await freePorts<[number, number, number, number, number, number]>(6);
  apiUrl = `http://127.0.0.1:${api}`;
  const common = { ...loginEnvironment(database), HOLDFAST_KEK_BASE64: Buffer.alloc(32, 9).toString("base64") };
  installation.start(["api"], {
    ...common,
    HOLDFAST_API_PORT: String(api),
    HOLDFAST_API_INTERNAL_PORT: String(internal),
    HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(OPERATOR).digest("hex"),
    HOLDFAST_EXECUTION_WS_URL: `ws://127.0.0.1:${balancer.port}/ws`,
    HOLDFAST_MIGRATE_ON_START: "no",
    HOLDFAST_DATABASE_POOL_SIZE: "4",
  });
  installation.start(["worker"], common);
  await until(() => answers(`${apiUrl}/readyz`));
  const ports: [number, number][] = [
    [rest[0], rest[1]],
    [rest[2], rest[3]],
  ];
  balancer.lead(ports.map(([port]) => port));
  for (const [port, internalPort] of ports)
    gateways.push(gatewayAt({ port, internalPort, apiInternal: internal }));
  for (const { url } of gateways) await until(() => answers(`${url}/readyz`));
  org = (await createClient({ baseUrl: apiUrl, token: OPERATOR })(getMe, {})).organizations[0]?.id ?? "";
  await connectAgent("first");
});

function gatewayAt(at: { port: number; internalPort: number; apiInternal: number }): Gateway {
  const restart = () =>
    installation.start(["gateway"], {
      HOLDFAST_GATEWAY_PORT: String(at.port),
      HOLDFAST_GATEWAY_INTERNAL_PORT: String(at.internalPort),
      HOLDFAST_API_INTERNAL_URL: `https://127.0.0.1:${at.apiInternal}`,
      HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
      HOLDFAST_DISPATCH_TOKEN: DISPATCH_TOKEN,
      HOLDFAST_REDIS_URL: redis.url,
      HOLDFAST_EXECUTION_WS_URL: `ws://127.0.0.1:${balancer.port}/ws`,
      HOLDFAST_DRAIN_SECONDS: "4",
    });
  const [url, internalUrl] = [at.port, at.internalPort].map((port) => `http://127.0.0.1:${port}`) as [
    string,
    string,
  ];
  return { url, internalUrl, process: restart(), restart };
}

/** Each connection goes to the next gateway that takes it. */
async function startBalancer() {
  let [ports, next]: [readonly number[], number] = [[], 0];
  const pass = (near: Socket, attempts: number) => {
    const far = dial(ports[next++ % ports.length] ?? 0, "127.0.0.1");
    const end = () => {
      near.destroy();
      far.destroy();
    };
    near.on("close", end);
    far.once("error", () => (attempts > 1 ? pass(near, attempts - 1) : end()));
    far.once("connect", () => {
      far.on("error", end).on("close", end);
      near.pipe(far).pipe(near);
    });
  };
  const server = createServer((near) =>
    pass(
      near.on("error", () => near.destroy()),
      ports.length,
    ),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return {
    port: (server.address() as AddressInfo).port,
    lead(to: readonly number[]) {
      ports = to;
    },
  };
}

async function connectAgent(name: string): Promise<void> {
  const call = createClient({ baseUrl: apiUrl, token: OPERATOR });
  const params = { org_id: org };
  const { token } = await call(createAgentPairingToken, { params });
  const place = ["--pairing-token", token, "--api-base", apiUrl];
  newHost(installation).connect([...place, "--name", name, "--max-in-flight", "100"]);
  await until(async () => {
    const { agents } = await call(listAgents, { params });
    return agents.some((one) => one.name === name && one.status === "online");
  });
}

/** A metric's value with this label. */
async function metric({ url }: Gateway, name: string, label: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const line = page.split("\n").find((one) => one.startsWith(`${name}{`) && one.includes(`"${label}"`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

const agentsAt = (gateway: Gateway) => metric(gateway, "holdfast_gateway_agents", "current");
const reachesRedis = (gateway: Gateway) => metric(gateway, "holdfast_gateway_store_reachable", "redis");

const runs = () => readFileSync(trace, "utf8").split("\n").filter(Boolean);
const runsOf = (marks: readonly string[]) =>
  runs()
    .filter((mark) => marks.includes(mark))
    .toSorted();

let lastMark = 0;
/** It writes its mark, and ends when the gate is there. */
function markedStep(gate?: string) {
  lastMark += 1;
  const mark = `mark-${String(lastMark).padStart(4, "0")}`;
  const hold = gate === undefined ? "" : `; until [ -e '${gate}' ]; do sleep 0.5; done`;
  const body = shellStep(org, `echo ${mark} >> '${trace}'${hold}; echo ${mark}`, LONG);
  return { mark, step: { runId: body.runId, nodeId: body.nodeId, body } };
}

/** Retries at the other gateway. */
function newDispatcher() {
  let turn = 0;
  return createDispatcher({
    url: () => gateways[turn++ % gateways.length]?.internalUrl ?? "",
    token: DISPATCH_TOKEN,
    random: Math.random,
  });
}

type Marked = ReturnType<typeof markedStep> & { result: ReturnType<ReturnType<typeof newDispatcher>["run"]> };

/** Steps that run until the gate opens, with their callers. */
async function holdSteps(count: number) {
  const gate = join(scratchDirectory(), "gate");
  const dispatcher = newDispatcher();
  const held: Marked[] = Array.from({ length: count }, () => {
    const marked = markedStep(gate);
    return { ...marked, result: dispatcher.run(marked.step) };
  });
  const marks = held.map(({ mark }) => mark);
  await expect.poll(() => runsOf(marks)).toEqual(marks);
  return { held, release: () => appendFileSync(gate, "") };
}

/** Callers that dispatch one step after the other. */
function startLanes() {
  const dispatcher = newDispatcher();
  const done: Marked[] = [];
  let stopped = false;
  const lane = async () => {
    while (!stopped) {
      const marked = markedStep();
      const result = dispatcher.run(marked.step);
      await result;
      done.push({ ...marked, result });
    }
  };
  const lanes = Array.from({ length: LANES }, lane);
  return {
    /** Until so many more steps have ended. */
    progress: async (count = 6) => {
      const before = done.length;
      await expect.poll(() => done.length).toBeGreaterThanOrEqual(before + count);
    },
    stop: async () => {
      stopped = true;
      await Promise.all(lanes);
      return done;
    },
  };
}

/** Each ran once, and everybody who asks is told the same. */
async function expectOnce(all: readonly Marked[]): Promise<void> {
  const dispatcher = newDispatcher();
  for (const { mark, step, result } of all) {
    const answered = await result;
    expect(answered).toMatchObject({ status: "succeeded", output: { exitCode: 0, stdout: `${mark}\n` } });
    expect(await dispatcher.result(step)).toEqual(answered);
  }
  const marks = all.map(({ mark }) => mark).toSorted();
  expect(runsOf(marks)).toEqual(marks);
}

describe.skipIf(without)("two gateways", () => {
  it("EXEC-06 serve each other's agents, for callers that wait and for those that ask later", async () => {
    const held = await Promise.all(gateways.map(agentsAt));
    expect(held.toSorted()).toEqual([0, 1]);
    const [a, b] = (held[0] === 1 ? gateways : gateways.toReversed()) as [Gateway, Gateway];
    const waited = markedStep();
    const answer = await dispatch(b, waited.step.body);
    expect(answer).toMatchObject({
      status: 200,
      body: { status: "succeeded", output: { stdout: `${waited.mark}\n` } },
    });
    const later = markedStep();
    const requestId = requestIdOf(later.step.body);
    expect(await dispatchAsync(b, later.step.body)).toMatchObject({
      status: 201,
      body: { requestId, dispatched: true },
    });
    await expect.poll(() => resultOf(b, requestId)).toMatchObject({ status: 200, body: { status: "succeeded" } });
    const stored = await resultOf(b, requestId);
    expect(await resultOf(a, requestId)).toEqual(stored);
    expect((await dispatch(a, waited.step.body)).body).toEqual(answer.body);
    expect(await dispatchAsync(a, later.step.body)).toMatchObject({ status: 200, body: { cached: true } });
    expect(runs()).toEqual([waited.mark, later.mark]);
  });

  it("EXEC-06 are restarted one after the other under running and new executions: none is lost, none runs twice", async () => {
    await connectAgent("second");
    expect((await Promise.all(gateways.map(agentsAt))).reduce((sum, one) => sum + one)).toBe(2);
    const { held, release } = await holdSteps(RUNNING);
    const lanes = startLanes();
    for (const gateway of gateways) {
      const other = gateways.find((one) => one !== gateway) ?? gateway;
      await lanes.progress();
      gateway.process.process.kill("SIGTERM");
      // Agents are at the other one, and serve, before this one is back.
      await expect.poll(() => agentsAt(other)).toBeGreaterThanOrEqual(2);
      await lanes.progress();
      await redis.flush();
      expect((await gateway.process.ended).code).toBe(0);
      await lanes.progress();
      gateway.process = gateway.restart();
      await until(() => answers(`${gateway.url}/readyz`));
    }
    await lanes.progress();
    const ended = await lanes.stop();
    release();
    await expectOnce([...held, ...ended]);
  });

  it("EXEC-06 TERM-07 execute steps without Redis, and through its return without content", async () => {
    const { held, release } = await holdSteps(4);
    const lanes = startLanes();
    await redis.stop();
    for (const gateway of gateways) await expect.poll(() => reachesRedis(gateway)).toBe(0);
    await lanes.progress();
    const beyond = markedStep();
    const answer = await Promise.all(gateways.map((gateway) => dispatch(gateway, beyond.step.body)));
    expect(answer.map(({ body }) => body["status"])).toEqual(["succeeded", "succeeded"]);
    await redis.start();
    for (const gateway of gateways) await expect.poll(() => reachesRedis(gateway)).toBe(1);
    await lanes.progress();
    await redis.flush();
    await lanes.progress();
    const ended = await lanes.stop();
    release();
    await expectOnce([...held, ...ended]);
    expect(runsOf([beyond.mark])).toEqual([beyond.mark]);
  });
});
