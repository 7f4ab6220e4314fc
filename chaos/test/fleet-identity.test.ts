// Twenty real agents through what once took a whole fleet away: an api whose clock jumps, and an api that publishes a
// wrong address. Nothing is repaired on a node.

import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createClient } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { loginEnvironment } from "@holdfast/control-plane/database/settings";
import { beforeAll, describe, expect, it } from "vitest";
import { join } from "../../node-agent/src/identity/join.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { someFacts } from "../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createTestDatabase, type TestDatabase } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../testkit/processes/free-ports.ts";
import { answers, until } from "../../testkit/processes/holdfast.ts";
import { clockOff, movableClock } from "../src/faults/host.ts";

const command = fileURLToPath(new URL("../../cli/bin/holdfast.mjs", import.meta.url));
const OPERATOR = `hfo_${randomBytes(32).toString("base64url")}`;
const AGENTS = 20;
/** At most a minute between two tries of an agent, on a busy machine. */
const BACK = { timeout: 150_000, interval: 500 };

const STALE_SECONDS = 20;

type Agent = { nodeId: string; stateDir: string; process: ChildProcess };

let database: TestDatabase;
let ports: { public: number; node: number; internal: number; nobody: number };
let api: ChildProcess;
let ofApi: Record<string, string>;
const clockDirectory = scratchDirectory();
const agents: Agent[] = [];
const operator = () => createClient({ baseUrl: `http://127.0.0.1:${ports.public}`, token: OPERATOR });

function start(name: readonly string[], env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [command, ...name], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: "ignore",
  });
  atEnd(() => end(child));
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await once(child, "exit");
}

const startAgent = (stateDir: string) =>
  start(["agent", "run"], {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    HOLDFAST_AGENT_PORT: "0",
    HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2",
  });

/** Published to nodes as its address. */
async function startApi(nodePort: number): Promise<void> {
  if (api) await end(api);
  api = start(["api"], { ...ofApi, HOLDFAST_NODE_API_URL: `https://127.0.0.1:${nodePort}` });
  await until(() => answers(`http://127.0.0.1:${ports.public}/readyz`));
}

const views = (): Promise<NodeDetail[]> =>
  Promise.all(agents.map(({ nodeId }) => operator()(getNode, { params: { node_id: nodeId } })));
const identities = () => agents.map(({ stateDir }) => readFileSync(`${stateDir}/identity.pem`, "utf8"));

/** How many nodes the server has received a heartbeat of since it was asked to count, by heartbeats that differ. */
function countOnline(): () => Promise<number> {
  const seen = new Map<string, Set<string | null>>();
  return async () => {
    for (const { id, heartbeat_at } of await views()) seen.set(id, (seen.get(id) ?? new Set()).add(heartbeat_at));
    return [...seen.values()].filter(({ size }) => size > 2).length;
  };
}

const allAreBack = async () => {
  await expect.poll(countOnline(), BACK).toBe(AGENTS);
  const online = async () => (await views()).filter(({ connection }) => connection === "online").length;
  await expect.poll(online, BACK).toBe(AGENTS);
};

describe.skipIf(lacks("faketime"))("a fleet of twenty agents", () => {
  beforeAll(async () => {
    database = await createTestDatabase();
    const [a, b, c, d] = await freePorts<[number, number, number, number]>(4);
    ports = { public: a, node: b, internal: c, nobody: d };
    ofApi = {
      ...movableClock(clockDirectory),
      ...loginEnvironment(database),
      HOLDFAST_API_PORT: String(ports.public),
      HOLDFAST_NODE_API_PORT: String(ports.node),
      HOLDFAST_API_INTERNAL_PORT: String(ports.internal),
      HOLDFAST_KEK_BASE64: Buffer.alloc(32, 9).toString("base64"),
      HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(OPERATOR).digest("hex"),
      HOLDFAST_MIGRATE_ON_START: "no",
      HOLDFAST_DATABASE_POOL_SIZE: "4",
      HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "0",
      HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS: String(STALE_SECONDS),
    };
    await startApi(ports.node);
    for (let count = 0; count < AGENTS; count += 1) {
      const { token, api_url } = await operator()(createEnrollmentToken, { body: {} });
      const stateDir = scratchDirectory();
      const { nodeId } = await join({ token, apiUrl: api_url, stateDir, facts: someFacts });
      agents.push({ nodeId, stateDir, process: startAgent(stateDir) });
    }
    const online = countOnline();
    await until(async () => (await online()) === AGENTS);
  });

  it("ID-03 ID-14 keeps its certificates while the api's clock is 14 hours ahead, and is back when it is right", async () => {
    const before = identities();
    const jump = clockOff(clockDirectory, "+14h");
    await jump.inject();
    const skewed = async () =>
      (await views()).filter(({ attention }) => attention.some(({ code }) => code === "clock_skew")).length;
    await expect.poll(skewed, BACK).toBe(AGENTS);
    // Several more heartbeats of each: enough to renew a certificate that seems to be half over.
    await expect.poll(countOnline(), BACK).toBe(AGENTS);
    await jump.repair();
    await allAreBack();
    expect(identities()).toEqual(before);
    await expect.poll(skewed, BACK).toBe(0);
  }, 500_000);

  it("AGENT-06 ID-14 does not show a node as online that stopped while the api's clock was ahead", async () => {
    const [gone] = agents;
    if (!gone) throw new Error("there is no agent");
    const jump = clockOff(clockDirectory, "+14h");
    await jump.inject();
    await expect.poll(countOnline(), BACK).toBe(AGENTS);
    await end(gone.process);
    await jump.repair();
    const connection = async () => (await operator()(getNode, { params: { node_id: gone.nodeId } })).connection;
    await expect.poll(connection, BACK).toBe("offline");
    gone.process = startAgent(gone.stateDir);
    await allAreBack();
  }, 500_000);

  it("ID-16 works on through a wrong published address and restarts, and is normal after the repair", async () => {
    await startApi(ports.nobody);
    const version = async () => Math.min(...(await views()).map(({ profile }) => profile?.version ?? 0));
    await expect.poll(version, BACK).toBe(2);
    for (const agent of agents) {
      await end(agent.process);
      agent.process = startAgent(agent.stateDir);
    }
    await allAreBack();
    const reported = async () =>
      (await views()).filter(({ attention }) => attention.some(({ code }) => code === "endpoint_profile_drift"))
        .length;
    await expect.poll(reported, BACK).toBe(AGENTS);
    await startApi(ports.node);
    await expect.poll(version, BACK).toBe(3);
    await allAreBack();
    await expect.poll(reported, BACK).toBe(0);
  }, 700_000);
});
