// The agent's stream to the real api, over networks and proxies that interfere with it.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import noop from "@holdfast/tasks/node.noop/contract";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { openAuthority } from "../../control-plane/src/identity/authority.ts";
import { readKeyRequest } from "../../control-plane/src/identity/requests.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { startTestAgent, type TestAgent } from "../../testkit/agent/agent.ts";
import { someFacts } from "../../testkit/agent/facts.ts";
import { startProxy } from "../../testkit/agent/proxy.ts";
import { startRelay } from "../../testkit/agent/relay.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { endedTask } from "../../testkit/api/ended-task.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { SERVICE_TOKEN } from "../../testkit/gateway/api.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { lookAt } from "../src/diagnostics/explain.ts";
import { readIdentity, writeIdentity } from "../src/identity/identity-file.ts";
import { join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import type { LinkTimes } from "../src/link/times.ts";
import { gate } from "./support/test-types.ts";

const INGRESS_TOKEN = "an-ingress-token-of-at-least-thirty-two-characters";
const HOUR_MS = 60 * 60_000;

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
/** How often each task ran, by what it echoes. */
const runs = new Map<string, number>();
/** A task that echoes this waits for its gate. */
const gates = new Map<string, Promise<void>>();
const agents: TestAgent[] = [];
let clockAheadMs = 0;

beforeAll(async () => {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + clockAheadMs);
  // Only when all that use it have ended: it must not go back.
  atEnd(() => clock.mockRestore());
  api = await startTestApi({
    env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_INGRESS_TOKEN: INGRESS_TOKEN },
  });
  client = api.operator((await createOrg(api, "streams")).id);
});

afterEach(async () => {
  await Promise.all(agents.splice(0).map((agent) => agent.stop()));
  await expect.poll(() => connections("stream")).toBe(0);
});

const moveClock = (ms: number) => {
  clockAheadMs += ms;
};

const counting = {
  contract: noop,
  executor: {
    run: async ({ params }: { params: unknown }) => {
      const { echo = "" } = params as { echo?: string };
      runs.set(echo, (runs.get(echo) ?? 0) + 1);
      await gates.get(echo);
      return { echo };
    },
  },
};

const joined = async () => {
  const stateDir = scratchDirectory();
  const { token } = await client(createEnrollmentToken, { body: {} });
  const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
  return { stateDir, nodeId };
};
const start = async (
  stateDir: string,
  options: { url?: string; heartbeat?: number; times?: Partial<LinkTimes> },
) => {
  const { url, heartbeat, times } = options;
  const agent = await startTestAgent(
    { stateDir },
    {
      env: {
        ...(url ? { HOLDFAST_NODE_API_URL: url } : {}),
        ...(heartbeat ? { HOLDFAST_AGENT_HEARTBEAT_SECONDS: String(heartbeat) } : {}),
      },
      loadType: async () => counting,
      ...(times ? { linkTimes: times } : {}),
    },
  );
  agents.push(agent);
  return agent;
};
const started = async (options: Parameters<typeof start>[1] = {}) => {
  const { stateDir, nodeId } = await joined();
  const agent = await start(stateDir, options);
  await expect.poll(() => node(nodeId)).toMatchObject({ status: "active", connection: "online" });
  return { nodeId, stateDir, agent };
};

const node = (nodeId: string) => client(getNode, { params: { node_id: nodeId } });
const create = (nodeId: string, echo: string) =>
  client(createTask, { params: { node_id: nodeId }, body: { type: "node.noop", params: { echo } } });
const finished = (taskId: string) => endedTask(client, taskId);
const runsOnce = async (nodeId: string, echo: string) => {
  const { id } = await create(nodeId, echo);
  expect(await finished(id)).toMatchObject({ status: "completed", result: { echo } });
  expect(runs.get(echo)).toBe(1);
};
const metric = async (name: string, reason: string) => {
  const text = await (await fetch(`${api.url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(`${name}{`) && one.includes(`reason="${reason}"`));
  return Number(line?.split(" ").at(-1) ?? 0);
};
const connections = (kind: "stream" | "poll") => metric("holdfast_node_connections", kind);
const streamsEnded = (reason: string) => metric("holdfast_node_streams_ended_total", reason);
const health = async (agent: TestAgent) =>
  JSON.parse((await agent.get("/healthz")).text) as Record<string, unknown>;

describe("an agent with a stream", () => {
  it("AGENT-06 TASK-02 has one connection, and gets tasks over it without polling", async () => {
    const { nodeId, agent } = await started();
    expect(await connections("stream")).toBe(1);
    await Promise.all(Array.from({ length: 50 }, (_, count) => runsOnce(nodeId, `plain-${count}`)));
    expect(await connections("poll")).toBe(0);
    expect(api.logged()).not.toContain("/tasks/wait");
    expect(await node(nodeId)).toMatchObject({ link: "stream", link_since: expect.any(String) });
    expect(await health(agent)).toMatchObject({ connected: true, link: "stream", link_since: expect.any(String) });
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_stream_up 1");
    const { connection } = lookAt(agent.stateDir, { now: Date.now(), diskPressurePercent: 99 });
    expect(connection?.detail).toBe(`connected to ${api.nodeUrl} over a stream`);
  });

  it("TASK-02 loses no task where silent connections are cut, and learns to keep its connection alive", async () => {
    const SILENT_MS = 1_000;
    const relay = await startRelay(api.nodeUrl);
    const { nodeId } = await started({ url: relay.url, times: { silentMs: 300, shortestPingMs: 100 } });
    const held = gate();
    gates.set("across-a-cut", held.passed);
    const { id } = await create(nodeId, "across-a-cut");
    await expect.poll(() => runs.get("across-a-cut")).toBe(1);
    relay.cutWhenSilentFor(SILENT_MS);
    await expect.poll(relay.cuts).toBeGreaterThan(0);
    held.open();
    expect(await finished(id)).toMatchObject({ status: "completed" });
    expect(runs.get("across-a-cut")).toBe(1);
    await expect.poll(relay.oldestMs).toBeGreaterThan(4 * SILENT_MS);
    await runsOnce(nodeId, "after-the-cuts");
    expect(await node(nodeId)).toMatchObject({ connection: "online", link: "stream" });
  });

  it("AGENT-06 polls behind a proxy that passes on no upgrades, and has a stream again when one does", async () => {
    const proxy = await startProxy(api, INGRESS_TOKEN);
    const { nodeId, agent } = await started({ url: proxy.url, heartbeat: 1 });
    expect(await connections("stream")).toBe(0);
    await expect.poll(() => node(nodeId)).toMatchObject({ connection: "online", link: "poll", link_since: null });
    await runsOnce(nodeId, "by-poll");
    expect(await health(agent)).toMatchObject({ connected: true, link: "poll" });
    proxy.passUpgrades();
    moveClock(31_000);
    await expect.poll(() => connections("stream")).toBe(1);
    await expect.poll(() => node(nodeId)).toMatchObject({ connection: "online", link: "stream" });
    await runsOnce(nodeId, "by-stream-again");
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_polls_failed_total 0");
  });

  it("AGENT-02 TASK-02 half-open: both sides notice, the server records why, and the task runs once", async () => {
    const relay = await startRelay(api.nodeUrl);
    const { nodeId, agent } = await started({ url: relay.url, heartbeat: 1, times: { callMs: 2_000 } });
    await expect.poll(() => connections("stream")).toBe(1);
    const before = await streamsEnded("unresponsive");
    relay.swallow();
    const { id } = await create(nodeId, "into-the-void");
    await expect
      .poll(() => health(agent))
      .toMatchObject({ connected: false, problem: "api_unreachable", link: null });
    moveClock(4_000);
    const later = await create(nodeId, "not-into-the-void");
    moveClock(27_000);
    await expect.poll(() => streamsEnded("unresponsive")).toBe(before + 1);
    // Nothing was offered to an agent that showed no sign of life.
    expect(await client(getTask, { params: { task_id: later.id }, query: {} })).toMatchObject({
      status: "queued",
    });
    const { superuser } = openRoles(api.database);
    const passTime = () => superuser`
      UPDATE node_presence SET heartbeat_at = heartbeat_at - interval '11 seconds',
        disconnected_at = disconnected_at - interval '11 seconds'
      WHERE node_id = ${nodeId} AND disconnected_why = 'unresponsive' RETURNING node_id`;
    await expect.poll(passTime).toHaveLength(1);
    expect(await node(nodeId)).toMatchObject({ connection: "offline", link: null });
    const { evidence } = await client(explainNode, { params: { node_id: nodeId } });
    expect(evidence.find(({ kind }) => kind === "connection")?.detail).toEqual({ why: "unresponsive" });
    relay.heal();
    expect(await finished(id)).toMatchObject({ status: "completed" });
    expect(runs.get("into-the-void")).toBe(1);
    expect(await finished(later.id)).toMatchObject({ status: "completed" });
    await expect.poll(() => node(nodeId)).toMatchObject({ connection: "online", link: "stream" });
  });
});

describe("a node's identity on a stream", () => {
  it("ID-01 moves to a new stream with a renewed certificate, and loses no task that is running", async () => {
    const { nodeId, stateDir, agent: first } = await started();
    await first.stop();
    const old = await halfOver(nodeId, stateDir);
    const held = gate();
    gates.set("across-a-renewal", held.passed);
    const { superuser } = openRoles(api.database);
    const renewal = gate();
    const taken = gate();
    // A renewal waits for this lock, and nothing else does.
    const locked = superuser.begin(async (tx) => {
      await tx`SELECT FROM nodes WHERE id = ${nodeId} FOR NO KEY UPDATE`;
      taken.open();
      await renewal.passed;
    });
    await taken.passed;
    const agent = await start(stateDir, {});
    await expect.poll(() => connections("stream")).toBe(1);
    const { id } = await create(nodeId, "across-a-renewal");
    await expect.poll(() => runs.get("across-a-renewal")).toBe(1);
    await expect.poll(async () => (await node(nodeId)).certificate?.serial).toBe(old);
    renewal.open();
    await locked;
    await expect.poll(() => agent.logged()).toContain("certificate renewed");
    const { serial } = readIdentity(stateFiles(stateDir)).certificate;
    expect(serial).not.toBe(old);
    await expect.poll(() => node(nodeId)).toMatchObject({ link: "stream", certificate: { serial } });
    held.open();
    expect(await finished(id)).toMatchObject({ status: "completed" });
    expect(runs.get("across-a-renewal")).toBe(1);
    expect(await connections("stream")).toBe(1);
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_polls_failed_total 0");
  });

  it("ID-09 is refused with the stream when it is revoked, and the agent says why", async () => {
    const { nodeId, agent } = await started();
    const before = await streamsEnded("refused");
    await client(changeNode, { params: { node_id: nodeId }, body: { change: "revoke", reason: "lost laptop" } });
    await expect.poll(() => health(agent)).toMatchObject({ connected: false, problem: "identity_revoked" });
    expect(await streamsEnded("refused")).toBe(before + 1);
    expect(await connections("stream")).toBe(0);
  });

  it("ID-09 learns each change of its standing at once, without a heartbeat", async () => {
    const { nodeId, agent } = await started();
    const heartbeats = () => agent.logged().split("heartbeat accepted").length;
    const before = heartbeats();
    const changes = [...Array(4)].flatMap(() => ["fence", "reactivate"] as const);
    for (const change of changes) {
      await client(changeNode, { params: { node_id: nodeId }, body: { change } });
      const status = change === "fence" ? "quarantined" : "active";
      await expect.poll(() => health(agent)).toMatchObject({ connected: true, standing: { status } });
    }
    expect(heartbeats() - before).toBeLessThan(changes.length);
    await runsOnce(nodeId, "active-again");
  });
});

/** Gives the host a certificate that the server knows, of which two thirds are over. Returns its serial. */
async function halfOver(nodeId: string, stateDir: string): Promise<string> {
  const { system, superuser } = openRoles(api.database);
  const kek = { id: "local-1", key: Buffer.alloc(32, 7) };
  const keyring = await openKeyring(system, { current: kek, previous: undefined });
  const authority = await openAuthority(system, keyring, new Date());
  const key = newPrivateKey();
  const { publicKey, keySha256 } = await readKeyRequest(certificateRequest(key, "x"));
  const issuedAt = new Date(Date.now() - 16 * HOUR_MS);
  const issued = await authority?.issueToNode({ id: nodeId, publicKey }, issuedAt);
  if (!issued) throw new Error("the api has no authority");
  const { serial, chain, notBefore, notAfter } = issued;
  await superuser`
    INSERT INTO node_certificates
      (serial, org_id, node_id, key_sha256, chain, issued_for, not_before, not_after, issued_at)
    SELECT ${serial}, org_id, id, ${keySha256}, ${chain}, 'renewal', ${notBefore}, ${notAfter}, ${issuedAt}
    FROM nodes WHERE id = ${nodeId}`;
  writeIdentity(stateFiles(stateDir), { keyPem: privateKeyPem(key), chainPem: chain });
  return serial;
}
