// How a whole agent keeps its link through faults of the server, the network and its own files.

import { once } from "node:events";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { describe, expect, it } from "vitest";
import { joinedDirectory, startTestAgent, type TestAgent } from "../../testkit/agent/agent.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { lookAt } from "../src/diagnostics/explain.ts";
import type { AgentFile } from "../src/identity/agent-file.ts";
import { readIdentity, writeIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { type FakeApi, type Fault, startFakeApi } from "./support/fake-api.ts";
import { loaderOf, testType } from "./support/test-types.ts";

const health = async (agent: TestAgent) => {
  const { status, text } = await agent.get("/healthz");
  return { status, ...(JSON.parse(text) as Record<string, unknown>) };
};
const recorded = (agent: TestAgent) => readFileSync(`${agent.stateDir}/diagnostics.log`, "utf8");
const connected = (agent: TestAgent) => expect.poll(() => health(agent)).toMatchObject({ connected: true });

describe("the link of an agent", () => {
  it("AGENT-06 tells facts, certificate, profile and counters with its heartbeat, then holds one poll", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api, {
      env: {
        ...{ HOLDFAST_AGENT_ADVERTISE_ADDRESS: "10.0.0.7", HOLDFAST_NODE_PROVIDER: "acme" },
        HOLDFAST_NODE_NETWORK_SIDE: "behind-nat",
      },
    });
    await expect.poll(() => api.held()).toBe(1);
    const { certificate } = readIdentity(stateFiles(agent.stateDir));
    expect(api.heartbeats.slice(0, 1)).toMatchObject([
      {
        facts: { agent_version: "0.1.0", advertised_address: "10.0.0.7" },
        certificate: { serial: certificate.serial, not_after: new Date(certificate.notAfter).toISOString() },
        profile: { name: "test", version: 1 },
        setup: {
          ...{ urls: { node_api: api.url, node_terminal: null }, provider: "acme", network_side: "behind-nat" },
          // Over loopback, where an address says nothing.
          source_address: null,
          root_disk: { used_percent: expect.any(Number), pressure_percent: 90 },
        },
        verifier_kids: api.verifiers.keys.map((key) => key.kid),
        running: 0,
        unsent_results: 0,
        counters: { tasks_started: 0, polls_failed: 0 },
      },
    ]);
  });

  it("AGENT-06 owns one connection while it is idle, and resumes the TLS session on the next, also of a restarted server", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    await expect.poll(() => api.held()).toBe(1);
    await expect.poll(() => api.connections()).toBe(1);
    const before = api.resumed.length;
    api.dropConnections();
    await expect.poll(() => api.resumed.length).toBeGreaterThan(before);
    expect(api.resumed[0]).toBe(false);
    expect(api.resumed.at(-1)).toBe(true);
    await connected(agent);
    await api.stop();
    // The connection that broke, and two that were refused.
    const failed = async () => Number(/polls_failed_total (\d+)/.exec((await agent.get("/metrics")).text)?.[1]);
    const sofar = await failed();
    await expect.poll(failed).toBeGreaterThan(sofar + 2);
    api.resumed.length = 0;
    await api.start();
    await connected(agent);
    expect(new Set(api.resumed)).toEqual(new Set([true]));
  });

  it("ID-16 finds the server by the addresses of its profile where no DNS knows its name", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const { agent: path } = stateFiles(stateDir);
    const joined = JSON.parse(readFileSync(path, "utf8")) as AgentFile;
    // The first of them answers nobody.
    joined.profile.resolve = { "nodes.holdfast.test": ["127.0.0.9", "127.0.0.1"] };
    writeFileSync(path, JSON.stringify(joined));
    const HOLDFAST_NODE_API_URL = api.url.replace("127.0.0.1", "nodes.holdfast.test");
    await connected(await startTestAgent(api, { stateDir, env: { HOLDFAST_NODE_API_URL } }));
  });

  it("AGENT-07 runs all the same when somebody else on the host has taken its port", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    atEnd(() => squatter.close());
    await once(squatter, "listening");
    const { port } = squatter.address() as AddressInfo;
    const agent = await startTestAgent(await startFakeApi(), { env: { HOLDFAST_AGENT_PORT: String(port) } });
    await connected(agent);
    expect(new URL(agent.url).port).not.toBe(String(port));
    expect(agent.logged()).toContain(`Port ${port} for the agent is in use by pid ${process.pid}`);
  });

  it("AGENT-07 tells health, capacity and metrics on loopback, to loopback names only", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    await connected(agent);
    expect(await health(agent)).toMatchObject({
      status: 200,
      ok: true,
      standing: { status: "active", reason: null },
      last_heartbeat_at: expect.stringContaining("T"),
      problem: null,
    });
    const capacity = JSON.parse((await agent.get("/v1/capacity")).text);
    expect(capacity).toMatchObject({
      running: 0,
      room: 32,
      cpus: expect.any(Number),
      memory_bytes: expect.any(Number),
    });
    const { text } = await agent.get("/metrics");
    expect(text).toContain("holdfast_agent_connection_up 1");
    expect(text).toContain("holdfast_agent_identity_rejections_total 0");
    expect((await agent.get("/other")).status).toBe(404);
    expect((await agent.get("/healthz", { host: "evil.example.com" })).status).toBe(421);
    expect((await agent.get("/healthz", { host: "localhost:9000" })).status).toBe(200);
  });

  const page = (text: string) => `<html><head><title>x</title></head><body><h1>${text}</h1></body></html>`;
  const faults: [string, string, Fault][] = [
    ["a reset", "api_unreachable", { do: "reset" }],
    ["a 503", "control_plane_unreachable", { do: "answer", status: 503, body: '{"code":"database_unavailable"}' }],
    ["a page of a proxy", "control_plane_unreachable", { do: "answer", status: 200, body: page("It works!") }],
    ["JSON of somebody else", "control_plane_unreachable", { do: "answer", status: 200, body: '{"ok":true}' }],
    ["a 502", "control_plane_unreachable", { do: "answer", status: 502, body: page("502 Bad Gateway") }],
  ];
  it.for(faults)("AGENT-01 records %s as %s before it tries again, and recovers", async ([, reason, fault]) => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    await expect.poll(() => api.held()).toBe(1);
    let left = 2;
    api.fault = (path) => (path === "/heartbeat" && left-- > 0 ? fault : undefined);
    api.dropConnections();
    await expect.poll(() => recorded(agent)).toContain(reason);
    await connected(agent);
    await expect.poll(() => api.diagnostics.map((one) => one.reason)).toContain(reason);
    // With it the server knows how much the clock of the records is off.
    expect(Date.parse(api.diagnosticsSentAt ?? "")).toBeGreaterThanOrEqual(
      Date.parse(api.diagnostics.at(-1)?.at ?? ""),
    );
    expect(recorded(agent)).toContain("process_alive");
    expect(lookAt(agent.stateDir, { now: Date.now(), diskPressurePercent: 100 }).last_problem).toBeNull();
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_identity_rejections_total 0");
  });

  it.for([
    ["429", { do: "answer", status: 429, headers: { "retry-after": "1" }, body: "{}" }],
    ["an edge's page", { do: "answer", status: 403, body: page("You are being rate limited") }],
  ] as [string, Fault][])("AGENT-02 slows down after %s", async ([, fault]) => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const requestedAt: number[] = [];
    api.fault = () => {
      requestedAt.push(performance.now());
      return fault;
    };
    const agent = await startTestAgent(api, { stateDir });
    await expect.poll(() => requestedAt.length).toBeGreaterThan(0);
    await expect.poll(() => health(agent)).toMatchObject({ connected: false, problem: "edge_rate_limited" });
    await expect.poll(() => requestedAt.length).toBeGreaterThan(1);
    const [first = 0, second = 0] = requestedAt;
    expect(second - first).toBeGreaterThanOrEqual(5_000);
  });

  it("AGENT-01 does not speak to a server of another CA", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const agent = await startTestAgent(api, { env: { HOLDFAST_NODE_API_URL: other.url } });
    await expect.poll(() => health(agent)).toMatchObject({ problem: "server_tls_untrusted" });
    expect(other.requests).toEqual([]);
    expect(recorded(agent)).toContain("server_tls_untrusted");
  });

  it("SEC-04 does not take a gateway for the api, whatever names its certificate has", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    await api.stop();
    api.shows = await api.authority.gateway(["localhost", "127.0.0.1"]);
    await api.start();
    const joined = api.requests.length;
    const agent = await startTestAgent(api, { stateDir });
    await expect.poll(() => health(agent)).toMatchObject({ problem: "server_tls_untrusted" });
    expect(api.requests.length).toBe(joined);
  });

  it("ID-14 tells a clock that is behind from a server that cannot be trusted", async () => {
    const api = await startFakeApi({ serverValidity: { notBefore: new Date(Date.now() + 600_000) } });
    const agent = await startTestAgent(api, { stateDir: await handMadeDirectory(api) });
    await expect.poll(() => health(agent)).toMatchObject({ problem: "clock_skew" });
  });

  it("ID-14 reports a clock that is off, and the server's time as it is", async () => {
    const api = await startFakeApi();
    api.serverTime = () => Date.now() - 600_000;
    const agent = await startTestAgent(api);
    await connected(agent);
    const { text } = await agent.get("/metrics");
    const [, skew = ""] = /holdfast_agent_clock_skew_seconds (-?[\d.]+)/.exec(text) ?? [];
    expect(Number(skew)).toBeCloseTo(-600, -1);
  });

  it("ID-09 keeps knocking when its identity is revoked or its certificate expired, and says so", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api, { stateDir: await handMadeDirectory(api, { expired: true }) });
    await expect.poll(() => health(agent)).toMatchObject({ status: 200, problem: "cert_expired" });
    await expect.poll(() => api.requests.length).toBeGreaterThan(1);
    expect(recorded(agent)).toContain("cert_expired");
    expect((await agent.get("/metrics")).text).not.toContain("identity_rejections_total 0");
    // A join beside the running agent is taken up.
    const key = newPrivateKey();
    const chainPem = await api.authority.certify(certificateRequest(key, "again"), api.nodeId);
    writeIdentity(stateFiles(agent.stateDir), { keyPem: privateKeyPem(key), chainPem });
    await connected(agent);
  });

  it("AGENT-05 waits for a key file that is missing, and goes on when it is back", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const { identity } = stateFiles(stateDir);
    renameSync(identity, `${identity}.away`);
    const agent = await startTestAgent(api, { stateDir });
    await expect.poll(() => health(agent)).toMatchObject({ problem: "identity_key_missing" });
    expect(recorded(agent)).toContain("identity_key_missing");
    renameSync(`${identity}.away`, identity);
    await connected(agent);
  });

  it("AGENT-05 does not run with a trust bundle that is not its own", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const stateDir = await joinedDirectory(api);
    writeFileSync(stateFiles(stateDir).trust, other.authority.rootPem);
    const agent = await startTestAgent(api, { stateDir });
    await expect.poll(() => health(agent)).toMatchObject({ problem: "trust_bundle_invalid" });
  });

  it("ID-09 pauses as the server says, and tells why", async () => {
    const api = await startFakeApi();
    api.standing = { status: "quarantined", reason: "two hosts with one identity" };
    const agent = await startTestAgent(api);
    await expect
      .poll(() => health(agent))
      .toMatchObject({
        connected: true,
        standing: { status: "quarantined", reason: "two hosts with one identity" },
      });
    expect(recorded(agent)).toContain("two hosts with one identity");
  });

  it("ID-03 renews its certificate with a new key while its poll is held, and loses no poll", async () => {
    const api = await startFakeApi({ validityMs: 60_000 });
    // Back-dated by five minutes and valid for one: more than half its lifetime is over.
    const agent = await startTestAgent(api, {
      loadType: loaderOf({ "test.one": testType(async () => ({ said: "done" })) }),
    });
    const files = stateFiles(agent.stateDir);
    await expect.poll(() => api.requests).toContain("/renew");
    await expect.poll(() => agent.logged()).toContain("certificate renewed");
    const [first = ""] = api.serials;
    const renewed = readIdentity(files);
    expect(renewed.certificate.serial).not.toBe(first);
    // The poll that was held on the old certificate brings the task.
    await expect.poll(() => api.held()).toBe(1);
    const polls = api.requests.filter((path) => path === "/tasks/wait").length;
    const task = api.enqueue(api.sign({ task_type: "test.one" }));
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { status: "succeeded" } });
    expect(api.requests.filter((path) => path === "/tasks/wait").length).toBeLessThanOrEqual(polls + 1);
    await expect.poll(() => api.serials).toContain(renewed.certificate.serial);
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_polls_failed_total 0");
    expect(existsSync(`${files.identity}.tmp`)).toBe(false);
  });

  it("ID-03 reports a renewal that fails, and goes on with what it has", async () => {
    const api = await startFakeApi({ validityMs: 60_000 });
    const refused = '{"code":"ca_unavailable","message":"no CA","next_step":"x"}';
    api.fault = (path) => (path === "/renew" ? { do: "answer", status: 503, body: refused } : undefined);
    const agent = await startTestAgent(api);
    await expect
      .poll(async () => (await agent.get("/metrics")).text)
      .toContain("holdfast_agent_renewals_failed_total 1");
    expect(await health(agent)).toMatchObject({ connected: true });
    expect(recorded(agent)).toContain("renewing the certificate failed");
  });

  it("ID-16 takes over keys and profile that the server tells, for the next start too", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    api.profile = { ...api.profile, version: 2, endpoints: { ...api.profile.endpoints, extra: "https://x" } };
    await startTestAgent(api, { stateDir });
    await expect.poll(() => readFileSync(stateFiles(stateDir).agent, "utf8")).toContain("https://x");
    expect(api.heartbeats[0]?.profile.version).toBe(1);
  });

  it("AGENT-02 does not ask without pause for a task that it refused before", async () => {
    const api = await startFakeApi();
    const offer = api.sign({ task_type: "test.unknown" });
    const answer = JSON.stringify({ node: api.standing, tasks: [offer], cancel: [] });
    api.fault = (path) => (path === "/tasks/wait" ? { do: "answer", status: 200, body: answer } : undefined);
    const agent = await startTestAgent(api, { env: { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2" } });
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(3);
    expect(recorded(agent)).toContain("task_replayed");
    // It was several hundred by then.
    expect(api.requests.filter((path) => path === "/tasks/wait").length).toBeLessThan(30);
  });

  it("TASK-02 holds a task while its refusal cannot be delivered, and is not offered it again and again", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    const offer = api.enqueue(api.sign({ task_type: "test.unknown" }));
    await expect.poll(() => api.resultOf(offer.task_id)?.outcome.status).toBe("refused");
    const polls: string[] = [];
    api.fault = (path, request) => {
      if (path === "/tasks/wait") polls.push(request.url ?? "");
      return path === "/results" ? { do: "answer", status: 503, body: "busy" } : undefined;
    };
    // As a server that lost the result: to the agent it is a replay.
    api.enqueue(offer);
    await expect.poll(() => polls.some((url) => url.includes(offer.task_id))).toBe(true);
    await expect.poll(() => api.held()).toBe(1);
    const attempts = api.requests.filter((path) => path === "/results").length;
    api.fault = () => undefined;
    await expect.poll(() => api.requests.filter((path) => path === "/results").length).toBe(attempts + 1);
    expect(recorded(agent)).toContain("task_replayed");
  });
});

/** Joined without the server, so that what is under test can be wrong from the first moment. */
async function handMadeDirectory(api: FakeApi, { expired = false } = {}): Promise<string> {
  const usual = await startFakeApi();
  const stateDir = await joinedDirectory(usual);
  const files = stateFiles(stateDir);
  const agent = readFileSync(files.agent, "utf8");
  writeFileSync(
    files.agent,
    agent
      .replaceAll(usual.nodeId, api.nodeId)
      .replaceAll(usual.url, api.url)
      .replaceAll(usual.authority.rootSha256, api.authority.rootSha256),
  );
  writeFileSync(files.trust, api.authority.rootPem);
  const key = newPrivateKey();
  const validity = expired ? { notBefore: new Date(Date.now() - 9e6), notAfter: new Date(Date.now() - 6e6) } : {};
  const chainPem = await api.authority.certify(certificateRequest(key, "x"), api.nodeId, validity);
  writeIdentity(files, { keyPem: privateKeyPem(key), chainPem });
  return stateDir;
}
