// A node that lost its certificate gets a new identity with its recovery token, and nobody else does: over the real api.

import { createHash, X509Certificate } from "node:crypto";
import { CallError } from "@holdfast/contracts/client";
import type { AnswerOf, BodyInputOf } from "@holdfast/contracts/endpoint";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { getServerTime, recoverNode, revokeRecoveryTokens } from "@holdfast/contracts/endpoints/recovery";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { isSignedBy } from "@holdfast/kit/signed-statement";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
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
import { auditTokenDays, expireTokens, revokeAllTokens } from "../src/recovery/upkeep.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "ours");
});

async function heartbeatWith(node: TestNode, held: RecoveryToken | null): Promise<Record<string, unknown>> {
  const recovery = held && { seq: held.seq, expires_at: held.expires_at };
  const { status, body } = await sendHeartbeatFrom(node, { recovery });
  expect(status).toBe(200);
  return body;
}
/** What a heartbeat with this token brings. */
const tokenAfter = async (node: TestNode, held: RecoveryToken | null) =>
  (await heartbeatWith(node, held))["recovery"] as RecoveryToken | undefined;

/** A node with a token that it has shown, and whose connection has ended. */
async function lostNode(): Promise<{ node: TestNode; token: RecoveryToken }> {
  const node = await enrollTestNode(api, org.id);
  const token = (await tokenAfter(node, null)) as RecoveryToken;
  expect(await tokenAfter(node, token)).toBeUndefined();
  await disconnect(node);
  return { node, token };
}

async function disconnect(node: Pick<TestNode, "id">): Promise<void> {
  await superuser`UPDATE node_presence SET disconnected_at = now() WHERE node_id = ${node.id}`;
}

type Body = BodyInputOf<typeof recoverNode>;

function recover(
  node: Pick<TestNode, "id">,
  token: Pick<RecoveryToken, "token">,
  { csr }: Pick<KeyAndRequest, "csr">,
  changes: Partial<Body> = {},
): Promise<AnswerOf<typeof recoverNode>> {
  const body: Body = {
    ...{ token: token.token, csr, node_id: node.id, profile: "default", cause: "cert_expired" as const },
    ...{ sent_at: new Date().toISOString(), instance_id: uuidv7(), boot_id: "boot-2", ...changes },
  };
  return api.operator()(recoverNode, { body });
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "it was not refused",
    (error: unknown) => {
      if (error instanceof CallError) return error.envelope.code;
      throw error;
    },
  );
}

/** Whether the certificate is accepted. */
async function isAccepted(
  node: TestNode,
  { certificate }: { certificate: string },
  key: string,
): Promise<boolean> {
  const client = openClient(api.nodeUrl, { cert: certificate, key, ca: node.tls.ca });
  const { status } = await client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
  return status === 200;
}

describe("a recovery token", () => {
  it("ID-04 comes with the first heartbeat, is stored as a hash, and is replaced only when it gets old", async () => {
    const node = await enrollTestNode(api, org.id);
    const first = (await tokenAfter(node, null)) as RecoveryToken;
    expect(first).toMatchObject({ token: expect.stringMatching(/^hfr_[\w-]{43}$/), seq: 1, profile: "default" });
    expect(Date.parse(first.expires_at) - Date.parse(first.issued_at)).toBe(86_400_000);
    expect(await tokenAfter(node, first)).toBeUndefined();
    const old = { ...first, expires_at: new Date(Date.parse(first.expires_at) - 3_500_000).toISOString() };
    const second = (await tokenAfter(node, old)) as RecoveryToken;
    expect(second.seq).toBe(2);
    const rows =
      await superuser`SELECT seq, secret_hash FROM recovery_tokens WHERE node_id = ${node.id} ORDER BY seq`;
    expect(rows.map(({ secret_hash }) => secret_hash)).toEqual(
      [first, second].map(({ token }) => createHash("sha256").update(token).digest()),
    );
  });

  it("ID-04 is confirmed at once by a node that has no other, which is asked once", async () => {
    const node = await enrollTestNode(api, org.id);
    const asked = async (held: RecoveryToken | null) => (await heartbeatWith(node, held))["again"] ?? false;
    const { recovery, again } = await heartbeatWith(node, null);
    expect(again).toBe(true);
    // It has lost it, or cannot keep it: more heartbeats would not help.
    expect(await asked(null)).toBe(false);
    const token = (await tokenAfter(node, null)) as RecoveryToken;
    expect(token.seq).toBeGreaterThan((recovery as RecoveryToken).seq);
    expect(await asked(token)).toBe(false);
    const old = { ...token, expires_at: new Date(Date.parse(token.expires_at) - 3_500_000).toISOString() };
    expect(await heartbeatWith(node, old)).toMatchObject({ recovery: { seq: token.seq + 1 } });
    // The one before still works.
    expect(await asked(old)).toBe(false);
    await superuser`UPDATE recovery_tokens SET revoked_at = now() WHERE node_id = ${node.id}`;
    expect(await asked({ ...token, seq: token.seq + 1 })).toBe(true);
  });

  it("ID-04 is not given to an agent that does not know of it", async () => {
    const node = await enrollTestNode(api, org.id);
    const { body } = await sendHeartbeatFrom(node);
    expect(body).not.toHaveProperty("recovery");
  });

  it("ID-04 is replaced at once when the server does not know it, above the node's own number", async () => {
    const node = await enrollTestNode(api, org.id);
    const expires_at = new Date(Date.now() + 86_000_000).toISOString();
    const { body } = await sendHeartbeatFrom(node, { recovery: { seq: 41, expires_at } });
    expect(body["recovery"]).toMatchObject({ seq: 42 });
  });

  it("ID-05 gives the node a new identity, ends the earlier one, and comes with the next token", async () => {
    const { node, token } = await lostNode();
    const keys = await makeKeyRequest();
    const recovered = await recover(node, token, keys);
    expect(recovered).toMatchObject({ node_id: node.id, org_id: org.id, node_name: node.name });
    expect(recovered.trust.content).toMatchObject({ node_id: node.id });
    expect(recovered.recovery.seq).toBeGreaterThan(token.seq);
    expect(await isAccepted(node, recovered, keys.key)).toBe(true);
    expect(await isAccepted(node, { certificate: node.tls.cert }, node.key)).toBe(false);
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.recover" } });
    expect(items[0]).toMatchObject({ actor_id: node.id, result: "allowed", details: { cause: "cert_expired" } });
    expect(JSON.stringify(items)).not.toContain("hfr_");
  });

  it("ID-04 gives the same certificate to the same key again, and nothing to another key", async () => {
    const { node, token } = await lostNode();
    const keys = await makeKeyRequest();
    const first = await recover(node, token, keys);
    const again = await recover(node, token, keys);
    expect(again.certificate).toBe(first.certificate);
    expect(again.recovery.seq).toBeGreaterThan(first.recovery.seq);
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_used");
    expect(await isAccepted(node, first, keys.key)).toBe(true);
  });

  it("ID-04 renews the certificate of its only key when that has expired before the response arrived", async () => {
    const { node, token } = await lostNode();
    const keys = await makeKeyRequest();
    await recover(node, token, keys);
    await superuser`
      UPDATE node_certificates SET not_before = now() - interval '2 days', not_after = now() - interval '1 day'
      WHERE node_id = ${node.id}`;
    const again = await recover(node, token, keys);
    expect(await isAccepted(node, again, keys.key)).toBe(true);
  });

  it("ID-04 works until a newer one was shown, and is refused afterwards", async () => {
    const { node, token } = await lostNode();
    const old = { ...token, expires_at: new Date(Date.parse(token.expires_at) - 3_500_000).toISOString() };
    const newer = (await tokenAfter(node, old)) as RecoveryToken;
    await disconnect(node);
    // The newer one was lost on its way.
    const keys = await makeKeyRequest();
    const recovered = await recover(node, token, keys);
    const client = openClient(api.nodeUrl, { cert: recovered.certificate, key: keys.key, ca: node.tls.ca });
    const { seq, expires_at } = recovered.recovery;
    await client.ask({
      method: "POST",
      path: node.path("heartbeat"),
      body: heartbeatOf({ recovery: { seq, expires_at } }),
    });
    await disconnect(node);
    expect(await refusal(recover(node, token, keys))).toBe("recovery_token_superseded");
    expect(await refusal(recover(node, newer, keys))).toBe("recovery_token_superseded");
  });

  it("ID-05 is refused while an agent is connected as the node", async () => {
    const node = await enrollTestNode(api, org.id);
    const token = (await tokenAfter(node, null)) as RecoveryToken;
    const keys = await makeKeyRequest();
    expect(await refusal(recover(node, token, keys))).toBe("recovery_not_needed");
    await disconnect(node);
    expect((await recover(node, token, keys)).node_id).toBe(node.id);
  });

  it("ID-05 is refused for a retired, revoked or quarantined node, whatever else is wrong", async () => {
    for (const [change, code] of [
      ["fence", "node_quarantined"],
      ["revoke", "identity_revoked"],
      ["retire", "node_retired"],
    ] as const) {
      const { node, token } = await lostNode();
      await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change } });
      expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe(code);
    }
  });

  it("ID-04 is refused when it is too old, of another environment, of another node, or unknown", async () => {
    const { node, token } = await lostNode();
    const other = await lostNode();
    const keys = await makeKeyRequest();
    expect(await refusal(recover(node, token, keys, { profile: "another" }))).toBe("recovery_profile_mismatch");
    expect(await refusal(recover(node, other.token, keys))).toBe("recovery_token_unknown");
    expect(await refusal(recover(node, { token: "hfr_nonsense" }, keys))).toBe("recovery_token_unknown");
    await superuser`UPDATE recovery_tokens SET profile = 'before' WHERE node_id = ${node.id}`;
    expect(await refusal(recover(node, token, keys))).toBe("recovery_profile_mismatch");
    await superuser`UPDATE recovery_tokens SET profile = 'default', expires_at = now() WHERE node_id = ${node.id}`;
    expect(await refusal(recover(node, token, keys))).toBe("recovery_token_expired");
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.recover" } });
    expect(items[0]).toMatchObject({ result: "denied", reason: "recovery_token_expired", target_id: node.id });
  });

  it("ID-14 gives nothing to a host whose clock is wrong, and says the time", async () => {
    const { node, token } = await lostNode();
    const keys = await makeKeyRequest();
    const wrong = new Date(Date.now() - 3_600_000).toISOString();
    const error = await recover(node, token, keys, { sent_at: wrong }).catch((reason: unknown) => reason);
    expect((error as CallError).envelope).toMatchObject({
      code: "host_clock_skew",
      details: { server_time: expect.any(String) },
    });
    expect(
      await superuser`SELECT FROM recovery_tokens WHERE node_id = ${node.id} AND used_at IS NOT NULL`,
    ).toEqual([]);
    expect((await recover(node, token, keys)).node_id).toBe(node.id);
  });

  it("ID-04 ends with a new enrollment, and the node gets another one at once", async () => {
    const { node, token } = await lostNode();
    const again = await api.operator(org.id)(createEnrollmentToken, { body: { node_id: node.id } });
    const enrolled = await enrollTestNode(api, org.id, { token: again.token });
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_revoked");
    expect(await tokenAfter(enrolled, token)).toMatchObject({ seq: token.seq + 1 });
  });

  it("ID-04 is revoked by an operator and by no member; a connected node gets another one", async () => {
    const { node, token } = await lostNode();
    const member = api.as(await tokenFor(api, org, "member"));
    const params = { node_id: node.id };
    expect(await refusal(member(revokeRecoveryTokens, { params }))).toBe("forbidden");
    const elsewhere = await createOrg(api, "elsewhere");
    expect(await refusal(api.operator(elsewhere.id)(revokeRecoveryTokens, { params }))).toBe("not_found");
    expect(await api.operator(org.id)(revokeRecoveryTokens, { params })).toEqual({ revoked: 1 });
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_revoked");
    expect(await tokenAfter(node, token)).toMatchObject({ seq: token.seq + 1 });
  });

  it("ID-10 is evidence of a copy when it is old and the holder of the newer one is there, and only then", async () => {
    const { node, token } = await lostNode();
    const old = { ...token, expires_at: new Date(Date.parse(token.expires_at) - 3_500_000).toISOString() };
    const newer = (await tokenAfter(node, old)) as RecoveryToken;
    await tokenAfter(node, newer);
    await disconnect(node);
    const instances = () => superuser`
      SELECT value FROM node_observations WHERE node_id = ${node.id} AND kind = 'instances' AND replaced_at IS NULL`;
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_superseded");
    expect(await instances()).toEqual([]);
    await tokenAfter(node, newer);
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_superseded");
    expect(await instances()).toEqual([{ value: "two_or_more" }]);
  });
});

describe("a refused recovery", () => {
  it("AUDIT-02 is one event in the audit however often it is repeated, and one when it is over", async () => {
    const { node, token } = await lostNode();
    const keys = await makeKeyRequest();
    for (let time = 0; time < 4; time += 1) {
      expect(await refusal(recover(node, token, keys, { profile: "another" }))).toBe("recovery_profile_mismatch");
    }
    const own = async () => {
      const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.recover" } });
      return items.filter(({ target_id }) => target_id === node.id);
    };
    expect(await own()).toMatchObject([{ result: "denied", reason: "recovery_profile_mismatch" }]);
    await recover(node, token, keys);
    expect(await own()).toMatchObject([
      { result: "allowed", details: { token_seq: token.seq } },
      { result: "allowed", details: { recovered: true, reason: "recovery_profile_mismatch", count: 4 } },
      { result: "denied" },
    ]);
  });
});

describe("recovery tokens over time", () => {
  it("ID-04 are summarised in the audit, one event for a node and a day", async () => {
    const { node } = await lostNode();
    await superuser`UPDATE recovery_tokens SET expires_at = now() WHERE node_id = ${node.id}`;
    expect((await expireTokens(superuser)).expired).toBeGreaterThan(0);
    expect((await expireTokens(superuser)).expired, "counted once").toBe(0);
    await superuser`UPDATE recovery_token_days SET day = current_date - 1`;
    await auditTokenDays(superuser, createLog({ process: "test", level: "silent" }));
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.recovery_tokens" } });
    const own = items.filter(({ target_id }) => target_id === node.id);
    expect(own).toHaveLength(1);
    expect(own[0]?.details).toMatchObject({
      issued: 1,
      expired: 1,
      day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    });
  });

  it("ID-04 end where automatic recovery is switched off", async () => {
    const { node, token } = await lostNode();
    await revokeAllTokens(superuser);
    expect(await refusal(recover(node, token, await makeKeyRequest()))).toBe("recovery_token_revoked");
  });
});

describe("the server's time", () => {
  it("ID-14 is signed by the root, for this request", async () => {
    const nonce = "n".repeat(22);
    const signed = await api.operator()(getServerTime, { query: { nonce } });
    const { roots } = await trustOf();
    const root = new X509Certificate(roots[0] ?? "");
    const kid = createHash("sha256").update(root.raw).digest("hex");
    expect(isSignedBy(new Map([[kid, root.publicKey]]), signed)).toBe(true);
    expect(signed.content.nonce).toBe(nonce);
    expect(Math.abs(Date.parse(signed.content.time) - Date.now())).toBeLessThan(60_000);
  });
});

async function trustOf(): Promise<{ roots: string[] }> {
  const node = await enrollTestNode(api, org.id);
  return { roots: node.tls.ca };
}
