// Somebody has taken over an ingress, with its certificates and its place between nodes and api. A real agent behind it
// takes no keys, roots, addresses or orders from it, and says what it was offered.

import { createPublicKey, generateKeyPairSync, randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode, listNodeDiagnostics } from "@holdfast/contracts/endpoints/nodes";
import { rotateTaskSigningKey } from "@holdfast/contracts/endpoints/task-signing-keys";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openAuthority } from "../../../control-plane/src/identity/authority.ts";
import { readKeyRequest } from "../../../control-plane/src/identity/requests.ts";
import { openKeyring } from "../../../control-plane/src/mechanisms/sealing/keyring.ts";
import { join } from "../../../node-agent/src/identity/join.ts";
import { stateFiles } from "../../../node-agent/src/identity/state-directory.ts";
import { lacks } from "../../../scripts/facilities.mjs";
import { startTestAgent } from "../../../testkit/agent/agent.ts";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../../testkit/api/api.ts";
import { endedTask } from "../../../testkit/api/ended-task.ts";
import { makeKeyRequest } from "../../../testkit/api/nodes.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { SERVICE_TOKEN } from "../../../testkit/gateway/api.ts";
import { passwd, testUser } from "../../../testkit/tasks/os-users.ts";
import { aPerson } from "../support/command.ts";
import { type MaliciousIngress, startMaliciousIngress } from "../support/malicious-ingress.ts";

const TOKEN = "an ingress token of at least thirty-two characters".replaceAll(" ", "-");
const env = { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_INGRESS_TOKEN: TOKEN };
const HOUR = 3_600_000;

const pair = generateKeyPairSync("ed25519");
const mallory = { kid: "mallory", privateKey: pair.privateKey };
const { x = "" } = createPublicKey(pair.privateKey).export({ format: "jwk" });
const forgedKeys = { keys: [{ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid: "mallory", x }] };
/** As this server signs what it says about trust; to an older agent it means nothing. */
const forged = (kind: string, version: number, content: unknown) => ({
  ...{ kind, version, content },
  signatures: [signDetached(mallory, canonicalJson({ kind, version, content }))],
});
const soon = () => Math.floor(Date.now() / 1000) + 3600;

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let superuser: ReturnType<typeof openRoles>["superuser"];
let ingress: MaliciousIngress;

beforeAll(async () => {
  api = await startTestApi({ env });
  ({ superuser } = openRoles(api.database));
  client = api.operator((await createOrg(api, "attacked")).id);
  const directory = scratchDirectory();
  await aPerson({
    HOLDFAST_API_INTERNAL_URL: api.internalUrl,
    HOLDFAST_INGRESS_TOKEN: TOKEN,
    HOLDFAST_INGRESS_DIR: directory,
  }).json(["ingress", "--once"]);
  ingress = await startMaliciousIngress(directory, api.nodeUrl);
});

async function joined() {
  ingress.change(() => undefined);
  const stateDir = scratchDirectory();
  const { token } = await client(createEnrollmentToken, { body: {} });
  const { nodeId } = await join({ token, apiUrl: ingress.url, stateDir, facts: someFacts });
  return { stateDir, nodeId, params: { node_id: nodeId } };
}

/** A real agent that reaches its server through the ingress and no other way. */
async function agentOf({ stateDir, params }: Awaited<ReturnType<typeof joined>>) {
  const agent = await startTestAgent(
    { stateDir },
    { env: { HOLDFAST_NODE_API_URL: ingress.url, HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2" } },
  );
  // The answers that a test waits for are those of its own agent.
  onTestFinished(() => agent.stop());
  await expect.poll(() => client(getNode, { params })).toMatchObject({ status: "active" });
}

type Known = {
  verifiers: { keys: { kid: string }[] };
  profile: { version: number; endpoints: Record<string, string> };
};
const known = (stateDir: string) => JSON.parse(readFileSync(stateFiles(stateDir).agent, "utf8")) as Known;
const kids = (stateDir: string) => known(stateDir).verifiers.keys.map(({ kid }) => kid);

/** What the operator sees: the refusal on the node's page, in its records and in the audit. */
async function evidence(params: { node_id: string }, detail: RegExp) {
  const attention = async () => (await client(getNode, { params })).attention.map(({ code }) => code);
  await expect.poll(attention).toContain("trust_update_refused");
  const records = async () =>
    (await client(listNodeDiagnostics, { params })).items
      .filter(({ reason }) => reason === "trust_update_refused")
      .map((one) => one.detail);
  await expect.poll(records).toContainEqual(expect.stringMatching(detail));
  const { items } = await client(listAudit, { query: { action: "node.trust_refuse", limit: 1 } });
  expect(items[0]).toMatchObject({
    ...{ result: "denied", reason: "trust_update_refused", actor_id: params.node_id },
    details: { detail: expect.stringMatching(detail) },
  });
}

const ended = (taskId: string) => endedTask(client, taskId);

describe.skipIf(lacks("root"))("a malicious ingress", () => {
  it("TASK-03 cannot give a node keys of its own, nor make it run what they have signed", async () => {
    const node = await joined();
    const { stateDir, nodeId, params } = node;
    const before = kids(stateDir);
    await agentOf(node);
    const user = testUser();
    const task = {
      task_id: randomUUID(),
      node_id: nodeId,
      task_type: "allocation.provision_user",
      params: {
        username: user.username,
        allocation_id: user.allocation_id,
        ssh_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleW9mYXRlc3R1c2VydGhhdG9wZW5zbm90aGluZyEh mallory"],
      },
      expires_at: new Date(Date.now() + 600_000).toISOString(),
    };
    const signature = signDetached(mallory, canonicalJson(task));
    const offer = { ...task, signature, generation: 1, correlation_id: "of-mallory" };
    ingress.change((path, body) => {
      // The api knows no such task, and would have the node stop it.
      if ("cancel" in body) body["cancel"] = path === "progress" ? false : [];
      if (path === "heartbeat") {
        body["verifiers"] = forgedKeys;
        body["trust"] = { key_sets: [forged("task_key_set", soon(), forgedKeys)] };
      }
      if (path === "wait" && ingress.delivered("heartbeat") > 0) body["tasks"] = [offer];
    });
    const answers = () =>
      ingress.sent
        .filter(({ path }) => path === "results")
        .flatMap(({ body }) => body["results"] as { task_id: string; outcome: unknown }[])
        .filter((one) => one.task_id === task.task_id);
    await expect.poll(answers).not.toEqual([]);
    expect(passwd(user.username), "a user with the attacker's SSH key").toBeUndefined();
    expect(answers()[0]?.outcome).toMatchObject({ status: "refused", failure: { code: "task_key_unknown" } });
    expect(kids(stateDir)).toEqual(before);
    await evidence(params, /task signing keys .*without a signature/);
    // The node goes on with what it had.
    ingress.change(() => undefined);
    const own = await client(createTask, { params, body: { type: "node.noop" } });
    expect(await ended(own.id)).toMatchObject({ status: "completed" });
  });

  it("TASK-03 cannot take a node back to keys that have ended", async () => {
    const node = await joined();
    const { stateDir, params } = node;
    const [first] = kids(stateDir);
    await agentOf(node);
    let old: Record<string, unknown> | undefined;
    ingress.change((path, body) => {
      if (path === "heartbeat" && (body["verifiers"] || body["trust"])) old ??= structuredClone(body);
    });
    const { next } = await api.operator()(rotateTaskSigningKey, {});
    await expect.poll(() => kids(stateDir)).toContain(next.kid);
    await superuser`UPDATE task_signing_keys SET verify_until = now() WHERE kid <> ${next.kid}`;
    await superuser`UPDATE task_signing_keys SET sign_from = now() WHERE kid = ${next.kid}`;
    // As every replica sees it a minute later.
    const replica = await startTestApi({ database: api.database, env });
    ingress.behind = replica.nodeUrl;
    await expect.poll(() => kids(stateDir)).toEqual([next.kid]);

    ingress.change((path, body) => {
      if (path === "heartbeat") Object.assign(body, { verifiers: old?.["verifiers"], trust: old?.["trust"] });
    });
    await expect.poll(() => ingress.delivered("heartbeat")).toBeGreaterThan(1);
    expect(kids(stateDir), "the key that has ended").not.toContain(first);
    await evidence(params, /task signing keys .*older/);
    ingress.behind = api.nodeUrl;
    await replica.stop();
  });

  it("ID-03 cannot add a root with a renewed certificate", async () => {
    const node = await joined();
    const { stateDir, nodeId, params } = node;
    const files = stateFiles(stateDir);
    const serial = await ageCertificate(stateDir, nodeId);
    const roots = readFileSync(files.trust, "utf8");
    const { rootPem } = await makeAuthority();
    ingress.change((path, body) => {
      if (path === "renew") (body["trust_bundle"] as string[]).push(rootPem);
    });
    await agentOf(node);
    await expect.poll(() => ingress.delivered("renew")).toBe(1);
    const current = async () => (await client(getNode, { params })).certificate?.serial;
    await expect.poll(current).not.toBe(serial);
    expect(readFileSync(files.trust, "utf8")).toBe(roots);
    await evidence(params, /roots came with a renewed certificate/);
  });

  it("ID-16 cannot send a node elsewhere, nor give it roots", async () => {
    const node = await joined();
    const { stateDir, params } = node;
    const files = stateFiles(stateDir);
    const [before, roots] = [known(stateDir).profile, readFileSync(files.trust, "utf8")];
    await agentOf(node);
    const { rootPem } = await makeAuthority();
    const profile = { ...before, version: before.version + 1 };
    profile.endpoints = { ...before.endpoints, node_terminal: "https://evil.example" };
    ingress.change((path, body) => {
      if (path !== "heartbeat") return;
      body["profile"] = profile;
      body["trust"] = {
        profile: forged("environment_profile", profile.version, profile),
        bundle: forged("trust_bundle", 2, { roots: [rootPem] }),
      };
    });
    await expect.poll(() => ingress.delivered("heartbeat")).toBeGreaterThan(1);
    expect(known(stateDir).profile).toEqual(before);
    expect(readFileSync(files.trust, "utf8")).toBe(roots);
    await evidence(params, /a trust bundle .*an environment profile/);
  });

  it("ID-01 cannot give a machine that joins keys or roots of its own, not even old ones of the server", async () => {
    const { rootPem } = await makeAuthority();
    let old: unknown;
    ingress.change((path, body) => {
      if (path === "enroll") old = structuredClone(body["trust"]);
    });
    const attempt = async () => {
      const stateDir = scratchDirectory();
      const { token } = await client(createEnrollmentToken, { body: {} });
      await join({ token, apiUrl: ingress.url, stateDir, facts: someFacts });
      return kids(stateDir);
    };
    await attempt();
    const answers: ((body: Record<string, unknown>) => void)[] = [
      (body) => {
        body["verifiers"] = forgedKeys;
        body["trust_bundle"] = [...(body["trust_bundle"] as string[]), rootPem];
        const { content } = (body["trust"] ?? {}) as { content?: Record<string, unknown> };
        body["trust"] = {
          ...(body["trust"] as object),
          content: { ...content, key_set: { version: 1, ...forgedKeys } },
        };
      },
      (body) => {
        delete body["trust"];
      },
      (body) => {
        body["trust"] = old;
      },
    ];
    for (const answer of answers) {
      ingress.change((path, body) => {
        if (path === "enroll") answer(body);
      });
      await expect(attempt()).rejects.toMatchObject({
        code: "enrollment_answer_untrusted",
        reason: "trust_update_refused",
      });
    }
  });
});

/** As if the node had joined fifteen hours ago: its certificate is due to be renewed. */
async function ageCertificate(stateDir: string, nodeId: string): Promise<string> {
  const { system } = openRoles(api.database);
  const kek = { id: "local-1", key: Buffer.alloc(32, 7) };
  const authority = await openAuthority(system, await openKeyring(system, { current: kek }), new Date());
  const { key, csr } = await makeKeyRequest();
  const { publicKey, keySha256 } = readKeyRequest(csr);
  const issued = authority?.issueToNode({ id: nodeId, publicKey }, new Date(Date.now() - 15 * HOUR));
  if (!issued) throw new Error("the CA is not there");
  await superuser`
    UPDATE node_certificates SET serial = ${issued.serial}, key_sha256 = ${keySha256}, chain = ${issued.chain},
      not_before = ${issued.notBefore}, not_after = ${issued.notAfter} WHERE node_id = ${nodeId}`;
  writeFileSync(stateFiles(stateDir).identity, `${key}\n${issued.chain}`, { mode: 0o600 });
  return issued.serial;
}
