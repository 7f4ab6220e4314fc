// Recovery bundles at the api: who creates them, for which nodes they work, and how often.

import { createHash, X509Certificate } from "node:crypto";
import { CallError } from "@holdfast/contracts/client";
import type { AnswerOf, BodyInputOf } from "@holdfast/contracts/endpoint";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  createBundle,
  listBundles,
  listNodesWithoutToken,
  revokeBundle,
} from "@holdfast/contracts/endpoints/bundles";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { recoverNode } from "@holdfast/contracts/endpoints/recovery";
import { createToken, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { BUNDLE_LINE_PREFIX } from "@holdfast/contracts/secrets";
import { unpackLine } from "@holdfast/kit/packed-line";
import { isSignedBy } from "@holdfast/kit/signed-statement";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  heartbeatOf,
  type KeyAndRequest,
  makeKeyRequest,
  openClient,
  sendHeartbeatFrom,
  type TestNode,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "ours");
});

type Created = AnswerOf<typeof createBundle>;

function create(node: Pick<TestNode, "id">, body: BodyInputOf<typeof createBundle> = {}): Promise<Created> {
  return api.operator(org.id)(createBundle, { params: { node_id: node.id }, body });
}

async function nodeWithBundle(): Promise<{ node: TestNode; created: Created }> {
  const node = await enrollTestNode(api, org.id);
  return { node, created: await create(node) };
}

type Body = BodyInputOf<typeof recoverNode>;

function use(
  node: Pick<TestNode, "id">,
  created: Pick<Created, "bundle">,
  { csr }: Pick<KeyAndRequest, "csr">,
  changes: Partial<Body> = {},
): Promise<AnswerOf<typeof recoverNode>> {
  const body: Body = {
    ...{ token: created.bundle.content.token, csr, node_id: node.id, profile: "default" },
    ...{ cause: "identity_lost" as const, sent_at: new Date().toISOString() },
    ...{ instance_id: uuidv7(), boot_id: "boot-2", ...changes },
  };
  return api.operator()(recoverNode, { body });
}

async function refusal(work: Promise<unknown>): Promise<CallError["envelope"]> {
  return work.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: unknown) => {
      if (error instanceof CallError) return error.envelope;
      throw error;
    },
  );
}

const codeOf = async (work: Promise<unknown>) => (await refusal(work)).code;

async function isAccepted(node: TestNode, certificate: string, key: string): Promise<boolean> {
  const client = openClient(api.nodeUrl, { cert: certificate, key, ca: node.tls.ca });
  const { status } = await client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
  return status === 200;
}

async function auditOf(created: Created) {
  const { items } = await api.operator(org.id)(listAudit, {
    query: { correlation_id: created.correlation_id, limit: 200 },
  });
  return items.toReversed();
}

describe("a recovery bundle", () => {
  it("ID-07 is one signed statement with everything that a connection needs, and no private key", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node, { trust: { key_set: 7, bundle: 1 } });
    const created = await create(node);
    const { bundle } = created;
    expect(RecoveryBundle.parse(JSON.parse(JSON.stringify(bundle)))).toEqual(bundle);
    const root = new X509Certificate(bundle.content.trust_bundle.roots[0] ?? "");
    const sha256 = createHash("sha256").update(root.raw).digest("hex");
    expect(created.root_sha256).toBe(sha256);
    expect(isSignedBy(new Map([[sha256, root.publicKey]]), bundle)).toBe(true);
    const { content } = bundle;
    expect(content).toMatchObject({
      node: { id: node.id, org_id: org.id, name: node.name },
      token: expect.stringMatching(/^hfu_[\w-]{43}$/),
      profile: { name: "default" },
      before: { profile: { name: "default", version: 1 }, key_set: 7, trust_bundle: 1, hostname: "machine-one" },
      after: { profile: { name: "default" }, trust_bundle: 1 },
    });
    expect(content.files.unit.content).toContain("ExecStart=/opt/holdfast-agent/current/bin/node");
    expect(content.files.env.unset).toContain("HOLDFAST_NODE_API_URL");
    expect(content.key_set.keys.length).toBeGreaterThan(0);
    expect(JSON.stringify(bundle)).not.toContain("PRIVATE KEY");
    expect(Date.parse(content.expires_at) - Date.parse(content.issued_at)).toBe(86_400_000);
    const line = unpackLine(BUNDLE_LINE_PREFIX, `${created.line.slice(0, 80)}\n ${created.line.slice(80)}`);
    expect(Buffer.from(line?.head ?? "", "base64url").toString("hex")).toBe(sha256);
    expect(JSON.parse(line?.text ?? "")).toEqual(bundle);
  });

  it("ID-07 is stored as a hash, and shown without its secret afterwards", async () => {
    const { created } = await nodeWithBundle();
    const [row] = await superuser`SELECT secret_hash FROM recovery_bundles WHERE id = ${created.id}`;
    expect(row?.["secret_hash"]).toEqual(createHash("sha256").update(created.bundle.content.token).digest());
    const { items } = await api.operator(org.id)(listBundles, {});
    expect(items[0]).toMatchObject({ id: created.id, state: "created", seq: 1, applied_at: null });
    expect(JSON.stringify([items, await auditOf(created)])).not.toContain("hfu_");
  });

  it("ID-08 gives a node without a recovery token a new identity, and ends everything that it had", async () => {
    const node = await enrollTestNode(api, org.id);
    const { body } = await sendHeartbeatFrom(node, { recovery: null });
    const old = body["recovery"] as RecoveryToken;
    const [unused, created] = [await create(node), await create(node)];
    expect([unused.seq, created.seq]).toEqual([1, 2]);
    const keys = await makeKeyRequest();
    // While the node is still connected: an operator has decided it.
    const recovered = await use(node, created, keys);
    expect(recovered).toMatchObject({ node_id: node.id, org_id: org.id, recovery: { seq: old.seq + 1 } });
    expect(recovered.trust.content.node_id).toBe(node.id);
    expect(await isAccepted(node, recovered.certificate, keys.key)).toBe(true);
    expect(await isAccepted(node, node.tls.cert, node.key)).toBe(false);
    expect(await codeOf(use(node, { bundle: { content: { token: old.token } } } as Created, keys))).toBe(
      "recovery_token_revoked",
    );
    expect(await codeOf(use(node, unused, await makeKeyRequest()))).toBe("bundle_revoked");
    const { items } = await api.operator(org.id)(listBundles, {});
    expect(items.slice(0, 2).map(({ state }) => state)).toEqual(["used", "revoked"]);
  });

  it("ID-07 gives the same certificate to the same key again, and nothing to another one", async () => {
    const { node, created } = await nodeWithBundle();
    const keys = await makeKeyRequest();
    const first = await use(node, created, keys);
    const again = await use(node, created, keys);
    expect(again.certificate).toBe(first.certificate);
    expect(await codeOf(use(node, created, await makeKeyRequest()))).toBe("bundle_used");
    expect(await isAccepted(node, first.certificate, keys.key)).toBe(true);
    const tokens = await superuser`
      SELECT seq FROM recovery_tokens WHERE node_id = ${node.id} AND revoked_at IS NULL ORDER BY seq`;
    expect(tokens.map(({ seq }) => Number(seq))).toEqual([first.recovery.seq, again.recovery.seq]);
  });

  it("ID-07 goes to one of several keys that use it at the same time", async () => {
    const { node, created } = await nodeWithBundle();
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => makeKeyRequest()));
    const answers = await Promise.allSettled(all.map((keys) => use(node, created, keys)));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const [row] = await superuser`
      SELECT count(*)::int AS n FROM node_certificates
      WHERE node_id = ${node.id} AND revoked_at IS NULL`;
    expect(row?.["n"]).toBe(1);
  });

  it("ID-07 is refused when it has expired, was revoked, or is of another node", async () => {
    const { node, created } = await nodeWithBundle();
    const other = await enrollTestNode(api, org.id);
    const keys = await makeKeyRequest();
    expect(await codeOf(use(other, created, keys))).toBe("bundle_unknown");
    expect(await codeOf(use(node, { bundle: { content: { token: "hfu_nonsense" } } } as Created, keys))).toBe(
      "bundle_unknown",
    );
    await superuser`UPDATE recovery_bundles SET expires_at = now() WHERE id = ${created.id}`;
    expect(await codeOf(use(node, created, keys))).toBe("bundle_expired");
    const { items } = await api.operator(org.id)(listBundles, {});
    expect(items.find(({ id }) => id === created.id)?.state).toBe("expired");
    const second = await create(node);
    await api.operator(org.id)(revokeBundle, { params: { bundle_id: second.id } });
    expect(await codeOf(use(node, second, keys))).toBe("bundle_revoked");
    const wrongClock = { sent_at: new Date(Date.now() - 3_600_000).toISOString() };
    expect(await codeOf(use(node, await create(node), keys, wrongClock))).toBe("host_clock_skew");
  });

  it("ID-07 changes nothing that operators decided: it is refused for retired, revoked and quarantined nodes", async () => {
    for (const [change, atUse, atCreate] of [
      ["fence", "node_quarantined", "node_change_refused"],
      ["revoke", "identity_revoked", "node_change_refused"],
      ["retire", "node_retired", "node_retired"],
    ] as const) {
      const { node, created } = await nodeWithBundle();
      await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change } });
      const used = await refusal(use(node, created, await makeKeyRequest()));
      expect(used.code).toBe(atUse);
      const refused = await refusal(create(node));
      expect(refused.code).toBe(atCreate);
      if (change === "revoke")
        expect(refused.next_step).toContain(`holdfast node token create --node ${node.name}`);
    }
  });

  it("ID-09 ends with a new enrollment of the node", async () => {
    const { node, created } = await nodeWithBundle();
    await enrollTestNode(api, org.id, { nodeId: node.id });
    expect(await codeOf(use(node, created, await makeKeyRequest()))).toBe("bundle_revoked");
  });

  it("SEC-01 is created by operators only, and ends with the API token that created it", async () => {
    const node = await enrollTestNode(api, org.id);
    const params = { node_id: node.id };
    const member = api.as(await tokenFor(api, org, "member"));
    expect(await codeOf(member(createBundle, { params, body: {} }))).toBe("forbidden");
    expect(await codeOf(member(listBundles, {}))).toBe("forbidden");
    const { id, token } = await api.operator(org.id)(createToken, { body: { name: "leaked", role: "admin" } });
    const created = await api.as(token)(createBundle, { params, body: {} });
    await api.operator(org.id)(revokeToken, { params: { token_id: id } });
    expect(await codeOf(use(node, created, await makeKeyRequest()))).toBe("bundle_revoked");
  });

  it("DRIFT-09 has one correlation id for everything that is done with it", async () => {
    const { node, created } = await nodeWithBundle();
    const keys = await makeKeyRequest();
    const recovered = await use(node, created, keys);
    await codeOf(use(node, created, await makeKeyRequest()));
    const state = { profile: { name: "default", version: 1 }, key_set: 1, trust_bundle: 1 };
    const applied_bundle = { id: created.id, applied_at: "2026-01-02T03:04:05.000Z", before: null, after: state };
    const client = openClient(api.nodeUrl, { cert: recovered.certificate, key: keys.key, ca: node.tls.ca });
    const ask = { method: "POST", path: node.path("heartbeat"), body: heartbeatOf({ applied_bundle }) };
    for (const _ of [1, 2]) expect((await client.ask(ask)).status).toBe(200);
    await api.operator(org.id)(revokeBundle, { params: { bundle_id: created.id } });
    const events = await auditOf(created);
    expect(events.map(({ action, result }) => [action, result])).toEqual([
      ["node.bundle_create", "allowed"],
      ["node.recover", "allowed"],
      ["node.recover", "denied"],
      ["node.bundle_apply", "allowed"],
      ["node.bundle_revoke", "allowed"],
    ]);
    expect(events.every((event) => event.target_id === node.id && event.details["bundle_id"] === created.id)).toBe(
      true,
    );
    expect(events[3]?.details).toMatchObject({
      applied_at: applied_bundle.applied_at,
      before: null,
      after: state,
    });
    const { items } = await api.operator(org.id)(listBundles, {});
    expect(items[0]).toMatchObject({ state: "used", revoked_at: null, applied_at: "2026-01-02T03:04:05.000Z" });
  });

  it("ID-07 is reported by nobody but its node, after its use", async () => {
    const { node, created } = await nodeWithBundle();
    const other = await enrollTestNode(api, org.id);
    const after = { profile: null, key_set: 0, trust_bundle: 0 };
    const applied_bundle = { id: created.id, applied_at: new Date().toISOString(), before: null, after };
    const reportedBy = async (one: TestNode) => {
      expect((await sendHeartbeatFrom(one, { applied_bundle })).status).toBe(200);
      const [row] = await superuser`SELECT applied_at FROM recovery_bundles WHERE id = ${created.id}`;
      return row?.["applied_at"];
    };
    expect(await reportedBy(node)).toBeNull();
    await use(node, created, await makeKeyRequest());
    expect(await reportedBy(other)).toBeNull();
  });
});

describe("nodes that need a recovery bundle", () => {
  it("ID-08 are those without a current token that may still have an identity", async () => {
    const own = await createOrg(api, "needy");
    const [bare, held, expired, fenced] = await Promise.all([1, 2, 3, 4].map(() => enrollTestNode(api, own.id)));
    if (!bare || !held || !expired || !fenced) throw new Error("four nodes");
    for (const node of [held, expired]) await sendHeartbeatFrom(node, { recovery: null });
    await superuser`UPDATE recovery_tokens SET expires_at = now() WHERE node_id = ${expired.id}`;
    await api.operator(own.id)(changeNode, { params: { node_id: fenced.id }, body: { change: "fence" } });
    const listed: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await api.operator(own.id)(listNodesWithoutToken, { query: { limit: 1, cursor } });
      listed.push(...page.items.map(({ node_id }) => node_id));
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(listed.sort()).toEqual([bare.id, expired.id].sort());
  });
});
