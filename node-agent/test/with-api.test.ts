// The agent against the real api and database: what the faulty twin only imitates.

import { writeFileSync } from "node:fs";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode, listNodeDiagnostics, listNodes } from "@holdfast/contracts/endpoints/nodes";
import { cancelTask, createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestAgent, type TestAgent } from "../../testkit/agent/agent.ts";
import { someFacts } from "../../testkit/agent/facts.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { endedTask } from "../../testkit/api/ended-task.ts";
import { runTask } from "../../testkit/tasks/run-task.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { join } from "../src/identity/join.ts";
import { requestRenewal } from "../src/identity/renew.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { openSession } from "../src/link/session.ts";

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;

beforeAll(async () => {
  api = await startTestApi();
  client = api.operator((await createOrg(api, "agents")).id);
});

const joined = async (options: { stateDir?: string; nodeId?: string; apiUrl?: string } = {}) => {
  const { stateDir = scratchDirectory(), nodeId, apiUrl = api.nodeUrl } = options;
  const { token } = await client(createEnrollmentToken, { body: { node_id: nodeId } });
  return { stateDir, ...(await join({ token, apiUrl, stateDir, facts: someFacts })) };
};
const started = async () => {
  const { stateDir, nodeId } = await joined();
  const agent = await startTestAgent({ stateDir });
  await expect.poll(() => client(getNode, { params: { node_id: nodeId } })).toMatchObject({ status: "active" });
  return { nodeId, agent };
};
const problemOf = async (agent: TestAgent) =>
  (JSON.parse((await agent.get("/healthz")).text) as { problem: string | null }).problem;
const finished = (taskId: string) => endedTask(client, taskId);

describe("agent and api", () => {
  it("ID-01 join, heartbeat, and are seen as an active node with its facts and certificate", async () => {
    const { nodeId, agent } = await started();
    const params = { node_id: nodeId };
    await expect.poll(() => client(getNode, { params })).toMatchObject({ status: "active", connection: "online" });
    const { certificate } = readIdentity(stateFiles(agent.stateDir));
    expect(await client(getNode, { params })).toMatchObject({
      agent_version: "0.1.0",
      certificate: { serial: certificate.serial, renewal_due_at: expect.any(String) },
      profile: { name: expect.any(String), version: expect.any(Number) },
      attention: [],
    });
    await expect
      .poll(async () => (await client(listNodeDiagnostics, { params })).items.map((one) => one.reason))
      .toContain("process_alive");
  });

  it("ID-01 join through the public listener on loopback as well", async () => {
    const { nodeApiUrl, nodeId } = await joined({ apiUrl: api.url });
    expect(nodeApiUrl).toBe(api.nodeUrl);
    expect((await client(listNodes, {})).items.map((one) => one.id)).toContain(nodeId);
  });

  it("TASK-09 run a task to its end, with progress on the way", async () => {
    const { nodeId } = await started();
    const body = { type: "node.noop", params: { echo: "real", hold_ms: 600 } };
    const task = await client(createTask, { params: { node_id: nodeId }, body });
    await expect
      .poll(async () => (await client(getTask, { params: { task_id: task.id }, query: {} })).phase)
      .toBe("holding");
    expect(await finished(task.id)).toMatchObject({
      status: "completed",
      result: { echo: "real" },
      timings: { holding: expect.any(Number) },
    });
  });

  it("TASK-09 run many at a time", async () => {
    const { nodeId } = await started();
    const tasks = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        client(createTask, {
          params: { node_id: nodeId },
          body: { type: "node.noop", params: { echo: String(index) } },
        }),
      ),
    );
    const ends = await Promise.all(tasks.map((task) => finished(task.id)));
    expect(ends.map(({ status, result }) => ({ status, result }))).toEqual(
      ends.map((_, index) => ({ status: "completed", result: { echo: String(index) } })),
    );
  });

  it("TASK-09 cancel a running task on the node", async () => {
    const { nodeId } = await started();
    const body = { type: "node.noop", params: { hold_ms: 60_000 } };
    const { id } = await client(createTask, { params: { node_id: nodeId }, body });
    await expect
      .poll(async () => (await client(getTask, { params: { task_id: id }, query: {} })).phase)
      .toBe("holding");
    await client(cancelTask, { params: { task_id: id } });
    expect(await finished(id)).toMatchObject({ status: "cancelled", failure: { code: "task_cancelled" } });
  });

  it("ID-09 end a revoked node's poll, which then says why; a token made for it takes it in again", async () => {
    const { nodeId, agent } = await started();
    const params = { node_id: nodeId };
    await expect.poll(() => client(getNode, { params })).toMatchObject({ status: "active" });
    await client(changeNode, { params, body: { change: "revoke", reason: "lost laptop" } });
    await expect.poll(() => problemOf(agent)).toBe("identity_revoked");
    expect((await agent.get("/metrics")).text).not.toContain("identity_rejections_total 0");
    const again = await joined({ stateDir: agent.stateDir, nodeId });
    expect(again).toMatchObject({ nodeId, rekeyed: true });
    await expect.poll(() => problemOf(agent)).toBeNull();
    await expect
      .poll(async () => JSON.parse((await agent.get("/healthz")).text))
      .toMatchObject({ connected: true, standing: { status: "quarantined" } });
    await client(changeNode, { params, body: { change: "reactivate" } });
    const { id } = await client(createTask, { params, body: { type: "node.noop" } });
    expect(await finished(id)).toMatchObject({ status: "completed" });
  });

  it("ID-09 leave a machine what it is when the token is not for its node, and make no second node", async () => {
    const { stateDir, nodeId } = await joined();
    const before = (await client(listNodes, { query: { limit: 200 } })).items.length;
    await expect(joined({ stateDir })).rejects.toMatchObject({ code: "enrollment_token_wrong_node" });
    expect(readIdentity(stateFiles(stateDir)).nodeId).toBe(nodeId);
    expect((await client(listNodes, { query: { limit: 200 } })).items.length).toBe(before);
  });

  it("DIAG-02 probe: the api tells whether it accepts the node's certificate, and gives it no task", async () => {
    const { agent, nodeId } = await started();
    const { stateDir } = agent;
    await agent.stop();
    const params = { node_id: nodeId };
    const { id } = await client(createTask, { params, body: { type: "node.noop" } });
    const task = () => client(getTask, { params: { task_id: id }, query: {} });
    const before = await task();
    const { keyPem, chainPem } = readIdentity(stateFiles(stateDir));
    const stranger = await makeAuthority();
    const key = newPrivateKey();
    const ofStranger = await stranger.certify(certificateRequest(key, "x"), nodeId);
    const lastHopOf = async (identity: string) => {
      writeFileSync(`${stateDir}/identity.pem`, identity);
      const profile = {
        name: "test",
        version: 1,
        endpoints: { node_api: api.nodeUrl },
        resolve: {},
        ca_sha256: [],
      };
      const { result } = await runTask("diag.network_probe", {}, { host: { stateDir, profile } });
      const [endpoint] = (result as { endpoints: { hops: unknown[] }[] }).endpoints;
      return endpoint?.hops.at(-1);
    };
    expect(await lastHopOf(keyPem + chainPem)).toMatchObject({ hop: "task_wait", ok: true });
    expect(await lastHopOf(privateKeyPem(key) + ofStranger)).toMatchObject({
      ...{ hop: "mtls", ok: false, code: "mtls_refused" },
      detail: expect.stringContaining("401 certificate_untrusted"),
    });
    expect(await task()).toEqual(before);
    await client(changeNode, { params, body: { change: "revoke", reason: "lost" } });
    expect(await lastHopOf(keyPem + chainPem)).toMatchObject({
      ...{ hop: "mtls", ok: false, code: "mtls_refused" },
      detail: expect.stringContaining("identity_revoked"),
    });
  });

  it("ID-03 renew over the present certificate, and the new one is the node's", async () => {
    const { nodeId, agent } = await started();
    const files = stateFiles(agent.stateDir);
    const session = openSession({ files, apiUrl: undefined, instanceId: crypto.randomUUID(), bootId: "b" });
    const link = session.client();
    const { identity, roots } = session.present();
    const renewed = await requestRenewal({ identity, roots, now: Date.now, ask: link.renew });
    session.offer(renewed);
    expect(readIdentity(files)).toEqual(identity);
    session.adopt({ identity: renewed.identity });
    expect(renewed.identity.certificate.serial).not.toBe(identity.certificate.serial);
    expect(renewed.identity.keyPem).not.toBe(identity.keyPem);
    const { seq } = await link.diagnostics([
      {
        seq: 7,
        at: new Date().toISOString(),
        reason: "process_alive",
        detail: "over the new certificate",
        instance_id: crypto.randomUUID(),
        correlation_id: null,
      },
    ]);
    expect(seq).toBeGreaterThanOrEqual(7);
    link.close();
    expect(await client(getNode, { params: { node_id: nodeId } })).toMatchObject({ status: "active" });
  });
});
