// From token to identity, over the real api: what each use of a token gives, and what it leaves behind.

import { createHash, generateKeyPairSync, webcrypto, X509Certificate } from "node:crypto";
import { CallError } from "@holdfast/contracts/client";
import { listAudit, listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import {
  createEnrollmentToken,
  enrollNode,
  getTrustBundle,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode, listNodes } from "@holdfast/contracts/endpoints/nodes";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  hostFacts,
  type KeyAndRequest,
  makeKeyRequest,
  openClient,
  requestFor,
  sendHeartbeatFrom,
  tokenOf,
  unsigned,
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

type Body = { token: string; csr: string; node_id?: string; node_name?: string; facts?: typeof hostFacts };

function enroll(body: Body) {
  return api.operator()(enrollNode, { body: { facts: hostFacts, ...body } });
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(() => "it was not refused", codeOf);
}

function codeOf(error: unknown): string {
  if (error instanceof CallError) return error.envelope.code;
  throw error;
}

async function envelopeOf(work: Promise<unknown>): Promise<CallError["envelope"]> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof CallError) return error.envelope;
  throw error;
}

const nodeCount = async () => Number((await superuser`SELECT count(*) AS n FROM nodes`)[0]?.["n"]);

describe("a token", () => {
  it("ID-01 carries the digest of the root CA, lasts 15 minutes and comes with the command to run", async () => {
    const made = await api.operator(org.id)(createEnrollmentToken, { body: {} });
    const { roots } = await api.operator()(getTrustBundle, {});
    const der = new X509Certificate(roots[0] ?? "").raw;
    const digest = createHash("sha256").update(der).digest("base64url");
    expect(made.token).toMatch(/^hfe_[\w-]{43}\.[\w-]{43}$/);
    expect(made.token.split(".")[1]).toBe(digest);
    expect(made.join_command).toBe(`holdfast agent join --token ${made.token} --api ${api.nodeUrl}`);
    expect([made.api_url, made.only_this_machine]).toEqual([api.nodeUrl, true]);
    const minutes = (Date.parse(made.expires_at) - Date.parse(made.created_at)) / 60_000;
    expect(Math.round(minutes)).toBe(15);
    const [row] = await superuser`SELECT secret_hash FROM enrollment_tokens WHERE id = ${made.id}`;
    expect(row?.["secret_hash"]).toEqual(
      createHash("sha256")
        .update(made.token.split(".")[0] ?? "")
        .digest(),
    );
  });

  it("ID-01 is listed without its secret, and names the node that came of it", async () => {
    const own = await createOrg(api, "listed");
    const made = await api.operator(own.id)(createEnrollmentToken, { body: {} });
    const node = await enrollTestNode(api, own.id, { token: made.token });
    const listed = await api.operator(own.id)(listEnrollmentTokens, {});
    expect(listed.items).toHaveLength(1);
    expect(listed.items[0]).toMatchObject({ id: made.id, enrolled_node_id: node.id, used_at: expect.any(String) });
    expect(JSON.stringify(listed)).not.toContain("hfe_");
  });

  it("ID-01 for a node needs one that is there and not retired, and takes no name", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "bound" });
    const make = (body: { node_id: string; node_name?: string }) =>
      refusal(api.operator(org.id)(createEnrollmentToken, { body }));
    expect(await make({ node_id: uuidv7() })).toBe("not_found");
    expect(await make({ node_id: node.id, node_name: "x" })).toBe("invalid_request");
    await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "retire" } });
    expect(await make({ node_id: node.id })).toBe("node_retired");
  });

  it("ID-01 is not made by a member", async () => {
    const member = api.as(await tokenFor(api, org, "member"));
    expect(await refusal(member(createEnrollmentToken, { body: {} }))).toBe("forbidden");
    expect(await refusal(member(listEnrollmentTokens, {}))).toBe("forbidden");
  });
});

describe("enrollment", () => {
  it("ID-02 gives a node a certificate of a day for its own key, with its id in subject and URI", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "first" });
    const [leaf = "", issuing = ""] = node.tls.cert.split(/(?<=-----END CERTIFICATE-----)\s/);
    const certificate = new X509Certificate(leaf);
    const root = new X509Certificate(node.tls.ca[0] ?? "");
    expect(certificate.subject).toBe(`CN=${node.id}`);
    expect(certificate.subjectAltName).toBe(`URI:holdfast://node/${node.id}`);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
    const hours = (certificate.validToDate.getTime() - Date.now()) / 3_600_000;
    expect(hours).toBeGreaterThan(23.9);
    expect(hours).toBeLessThanOrEqual(24);
    const backDated = Date.now() - certificate.validFromDate.getTime();
    expect(backDated).toBeGreaterThanOrEqual(5 * 60_000);
    expect(certificate.checkPrivateKey((await import("node:crypto")).createPrivateKey(node.key))).toBe(true);
    expect(certificate.verify(new X509Certificate(issuing).publicKey)).toBe(true);
    expect(new X509Certificate(issuing).verify(root.publicKey)).toBe(true);
    expect(node.enrolled).toMatchObject({
      org_id: org.id,
      node_name: "first",
      trust_bundle: node.tls.ca,
      profile: { name: "default", endpoints: { node_api: api.nodeUrl, public: api.url } },
    });
    expect(node.enrolled.verifiers.keys.length).toBeGreaterThan(0);
  });

  it("ID-01 is found on the node-facing listener too, by a machine without a certificate", async () => {
    const token = await tokenOf(api, org.id);
    const { csr } = await makeKeyRequest();
    const { roots } = await api.operator()(getTrustBundle, {});
    const newcomer = openClient(api.nodeUrl, { ca: roots });
    expect((await newcomer.ask({ path: "/v1/trust-bundle" })).body).toEqual({ roots });
    const body = { token, csr, facts: hostFacts };
    const answer = await newcomer.ask({ method: "POST", path: "/v1/enroll", body });
    expect(answer).toMatchObject({ status: 200, body: { org_id: org.id } });
    expect((await newcomer.ask({ path: "/v1/me" })).status).toBe(401);
    expect((await newcomer.ask({ path: "/openapi.json" })).status).toBe(401);
  });

  it("ID-02 leaves nothing for nodes on the public listener", async () => {
    const node = await enrollTestNode(api, org.id);
    const response = await fetch(`${api.url}${node.path("tasks/wait")}`);
    expect(response.status).toBe(404);
    const posted = await fetch(`${api.url}${node.path("heartbeat")}`, { method: "POST" });
    expect(posted.status).toBe(404);
  });

  it("ID-01 gives the same answer again to the same key, and makes no second node", async () => {
    const token = await tokenOf(api, org.id);
    const { csr } = await makeKeyRequest();
    const first = await enroll({ token, csr });
    const nodes = await nodeCount();
    expect(unsigned(await enroll({ token, csr }))).toEqual(unsigned(first));
    expect(unsigned(await enroll({ token, csr, node_id: first.node_id }))).toEqual(unsigned(first));
    expect(await nodeCount()).toBe(nodes);
  });

  it("ID-01 of two machines that race with one token lets exactly one in", async () => {
    for (let round = 0; round < 5; round += 1) {
      const token = await tokenOf(api, org.id);
      const nodes = await nodeCount();
      const keys = await Promise.all(Array.from({ length: 4 }, () => makeKeyRequest()));
      const results = await Promise.all(keys.map(({ csr }) => enroll({ token, csr }).then(() => "in", codeOf)));
      expect(results.sort()).toEqual([
        "enrollment_token_used",
        "enrollment_token_used",
        "enrollment_token_used",
        "in",
      ]);
      expect(await nodeCount()).toBe(nodes + 1);
    }
  });

  it("ID-01 of one machine that asks several times at once gives one node and one certificate", async () => {
    const token = await tokenOf(api, org.id);
    const { csr } = await makeKeyRequest();
    const ask = async () => unsigned(await enroll({ token, csr }));
    const [first, ...others] = await Promise.all(Array.from({ length: 4 }, ask));
    for (const other of others) expect(other).toEqual(first);
  });

  const cases: Record<string, () => Promise<Body & { expected: string }>> = {
    "used by another key": async () => {
      const token = await tokenOf(api, org.id);
      await enroll({ token, ...(await csrOnly()) });
      return { token, ...(await csrOnly()), expected: "enrollment_token_used" };
    },
    late: async () => {
      const token = await tokenOf(api, org.id);
      await superuser`UPDATE enrollment_tokens SET expires_at = now() - interval '1 second' WHERE used_at IS NULL`;
      return { token, ...(await csrOnly()), expected: "enrollment_token_expired" };
    },
    "of another node": async () => {
      const node = await enrollTestNode(api, org.id);
      const token = await tokenOf(api, org.id, node.id);
      return { token, ...(await csrOnly()), node_id: uuidv7(), expected: "enrollment_token_wrong_node" };
    },
    "for a new node, on a machine that is one": async () => {
      const token = await tokenOf(api, org.id);
      return { token, ...(await csrOnly()), node_id: uuidv7(), expected: "enrollment_token_wrong_node" };
    },
    revoked: async () => {
      const made = await api.operator(org.id)(createEnrollmentToken, { body: {} });
      await api.operator(org.id)(revokeEnrollmentToken, { params: { token_id: made.id } });
      return { token: made.token, ...(await csrOnly()), expected: "enrollment_token_revoked" };
    },
    "made for a node that was revoked since": async () => {
      const node = await enrollTestNode(api, org.id);
      const token = await tokenOf(api, org.id, node.id);
      await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "revoke" } });
      return { token, ...(await csrOnly()), expected: "identity_revoked" };
    },
    "with a request that is none": async () => ({
      token: await tokenOf(api, org.id),
      csr: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----",
      expected: "csr_invalid",
    }),
    "with an RSA key": async () => ({
      token: await tokenOf(api, org.id),
      csr: (await rsaRequest()).csr,
      expected: "csr_invalid",
    }),
    "with a P-384 key": async () => ({
      token: await tokenOf(api, org.id),
      csr: (await makeKeyRequest({ name: "ECDSA", namedCurve: "P-384" })).csr,
      expected: "csr_invalid",
    }),
    "with a request that its key did not sign": async () => ({
      token: await tokenOf(api, org.id),
      csr: await forgedRequest(),
      expected: "csr_invalid",
    }),
  };

  it.each(Object.entries(cases))(
    "ID-01 refuses a token %s, says why and audits it as failed",
    async (_name, make) => {
      const { expected, ...body } = await make();
      const nodes = await nodeCount();
      expect(await refusal(enroll(body))).toBe(expected);
      expect(await nodeCount()).toBe(nodes);
      const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.enroll", limit: 1 } });
      expect(items[0]).toMatchObject({
        actor_type: "anonymous",
        result: "failed",
        reason: expected,
        target_type: "enrollment_token",
        target_id: expect.any(String),
      });
    },
  );

  it("ID-01 leaves a token usable when the request was bad", async () => {
    const token = await tokenOf(api, org.id);
    expect(await refusal(enroll({ token, csr: (await rsaRequest()).csr }))).toBe("csr_invalid");
    expect(await enroll({ token, ...(await csrOnly()) })).toMatchObject({ org_id: org.id });
  });

  it("ID-01 refuses what is no token of ours, and audits it for the platform", async () => {
    for (const token of ["", "hfe_x", `hfe_${"a".repeat(43)}.${"b".repeat(43)}`, "x".repeat(200)]) {
      expect(await refusal(enroll({ token, ...(await csrOnly()) }))).toBe("enrollment_token_unknown");
    }
    const { items } = await api.operator()(listPlatformAudit, { query: { limit: 1 } });
    expect(items[0]).toMatchObject({ action: "node.enroll", reason: "enrollment_token_unknown", target_id: null });
  });

  it("ID-01 is audited with the node as the one who acted", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "audited" });
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.enroll", limit: 1 } });
    expect(items[0]).toMatchObject({
      actor_type: "node",
      actor_id: node.id,
      result: "allowed",
      target_type: "node",
      target_id: node.id,
      target_name: "audited",
      details: { again: false, hostname: "audited" },
    });
    expect(JSON.stringify(items)).not.toContain("hfe_");
    expect(api.logged()).not.toMatch(/hfe_[\w-]{20}/);
  });

  it("ID-01 names a node after the token, the wish or the host, and numbers it when the name is taken", async () => {
    const own = await createOrg(api, "names");
    const named = async (body: { node_name?: string }, wish?: string, hostname = "Web Server_1") => {
      const { token } = await api.operator(own.id)(createEnrollmentToken, { body });
      const { csr } = await makeKeyRequest();
      const facts = { ...hostFacts, hostname };
      return (await enroll({ token, csr, facts, ...(wish ? { node_name: wish } : {}) })).node_name;
    };
    expect(await named({ node_name: "chosen" }, "wished")).toBe("chosen");
    expect(await named({}, "Wished Name")).toBe("wished-name");
    expect(await named({})).toBe("web-server-1");
    expect(await named({})).toBe("web-server-1-2");
    expect(await named({ node_name: "web-server-1" })).toBe("web-server-1-3");
    const names = await Promise.all(Array.from({ length: 4 }, () => named({}, undefined, "together")));
    expect(names.sort()).toEqual(["together", "together-2", "together-3", "together-4"]);
    const listed = await api.operator(own.id)(listNodes, { query: { name: "together-3" } });
    expect(listed.items).toHaveLength(1);
  });

  it("SEC-03 limits unknown tokens by address, for as long as it says, and says nothing of them in the audit", async () => {
    await superuser`DELETE FROM rate_limits`;
    const bad = async () => envelopeOf(enroll({ token: `hfe_${"n".repeat(43)}`, ...(await csrOnly()) }));
    for (let attempt = 0; attempt < 60; attempt += 1) expect((await bad()).code).toBe("enrollment_token_unknown");
    const audited = async () =>
      (await superuser`SELECT FROM audit_events WHERE action = 'node.enroll' AND org_id IS NULL`).length;
    const before = await audited();
    const refused = await bad();
    expect(refused.code).toBe("rate_limit_exceeded");
    const { retry_after_seconds: wait } = refused.details as { retry_after_seconds: number };
    const [window] = await superuser<{ left: number }[]>`
      SELECT extract(epoch FROM max(window_ends_at) - now())::float8 AS left FROM rate_limits`;
    expect(wait).toBeLessThanOrEqual(60);
    expect(wait).toBeGreaterThanOrEqual(Math.floor(window?.left ?? Number.NaN));
    expect(await audited()).toBe(before);
    // Whoever has a token is not held up by whoever guesses beside them.
    await enrollTestNode(api, org.id, { hostname: "beside-a-guesser" });
    await superuser`UPDATE rate_limits SET window_ends_at = now()`;
    expect((await bad()).code).toBe("enrollment_token_unknown");
    await superuser`DELETE FROM rate_limits`;
  });

  it("SEC-03 limits what one refused token may ask by that token, and holds up no other", async () => {
    await superuser`DELETE FROM rate_limits`;
    const token = await tokenOf(api, org.id);
    await enroll({ token, ...(await csrOnly()) });
    const again = async () => refusal(enroll({ token, ...(await csrOnly()) }));
    for (let attempt = 0; attempt < 60; attempt += 1) expect(await again()).toBe("enrollment_token_used");
    expect(await again()).toBe("rate_limit_exceeded");
    expect(await refusal(enroll({ token: "hfe_no", ...(await csrOnly()) }))).toBe("enrollment_token_unknown");
    await superuser`DELETE FROM rate_limits`;
  });

  it("ID-01 lets 200 machines behind one address join at once", async () => {
    const from = await createOrg(api, "fleet");
    const tokens = await Promise.all(Array.from({ length: 200 }, () => tokenOf(api, from.id)));
    const keys = await Promise.all(tokens.map(csrOnly));
    const client = openClient(api.nodeUrl, { rejectUnauthorized: false, maxSockets: 50 });
    const joined = await Promise.all(
      tokens.map((token, n) =>
        client.ask({
          method: "POST",
          path: "/v1/enroll",
          body: { token, ...keys[n], facts: { ...hostFacts, hostname: `m-${n}` } },
        }),
      ),
    );
    expect(joined.filter(({ status }) => status !== 200)).toEqual([]);
    expect(new Set(joined.map(({ body }) => body["node_id"])).size).toBe(200);
  });
});

describe("a node that is enrolled again", () => {
  it("ID-09 gets a new key, and its old certificate is no longer accepted, not even on an open connection", async () => {
    const before = await enrollTestNode(api, org.id, { hostname: "rekeyed" });
    expect((await sendHeartbeatFrom(before)).status).toBe(200);
    const after = await enrollTestNode(api, org.id, { nodeId: before.id });
    expect([after.id, after.name]).toEqual([before.id, "rekeyed"]);
    expect((await sendHeartbeatFrom(after)).status).toBe(200);
    const old = await sendHeartbeatFrom(before);
    expect(old.body).toMatchObject({ code: "certificate_replaced", message: expect.stringContaining("replaced") });
  });

  it("ID-09 by several tokens at once ends up with one certificate that counts", async () => {
    const before = await enrollTestNode(api, org.id, { hostname: "contested" });
    const tokens = await Promise.all(Array.from({ length: 4 }, () => tokenOf(api, org.id, before.id)));
    const nodes = await Promise.all(tokens.map((token) => enrollTestNode(api, org.id, { token })));
    const answers = await Promise.all(nodes.map((node) => sendHeartbeatFrom(node)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401]);
  });

  it("ID-09 comes back from a revocation quarantined, until it is reactivated", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "returning" });
    await sendHeartbeatFrom(node);
    const change = (what: "revoke" | "reactivate") =>
      api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: what } });
    await change("revoke");
    expect((await sendHeartbeatFrom(node)).body["code"]).toBe("identity_revoked");
    expect(await refusal(change("reactivate"))).toBe("node_change_refused");
    const again = await enrollTestNode(api, org.id, { nodeId: node.id });
    expect((await sendHeartbeatFrom(node)).body["code"], "with the old certificate").toBe("certificate_replaced");
    expect((await sendHeartbeatFrom(again)).body).toMatchObject({ node: { status: "quarantined" } });
    expect(await change("reactivate")).toMatchObject({ status: "active" });
    expect((await sendHeartbeatFrom(again)).body).toMatchObject({ node: { status: "active" } });
  });

  it("ID-09 does not get back the certificate of a key that was revoked", async () => {
    const keys = await makeKeyRequest();
    const node = await enrollTestNode(api, org.id, { keys });
    await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "revoke" } });
    const token = await tokenOf(api, org.id, node.id);
    expect(await refusal(enroll({ token, csr: keys.csr }))).toBe("csr_invalid");
    expect(await enroll({ token, ...(await csrOnly()) })).toMatchObject({ node_id: node.id });
  });

  it("ID-09 may join as a new node after it was retired, under the same name", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "reused" });
    await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "retire" } });
    const again = await enrollTestNode(api, org.id, { hostname: "reused" });
    expect(again.id).not.toBe(node.id);
    expect(again.name).toBe("reused");
    const detail = await api.operator(org.id)(getNode, { params: { node_id: node.id } });
    expect(detail).toMatchObject({ status: "retired", attention: [] });
  });
});

async function csrOnly(): Promise<{ csr: string }> {
  const { csr } = await makeKeyRequest();
  return { csr };
}

async function rsaRequest(): Promise<KeyAndRequest> {
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: "SHA-256",
  };
  return requestFor(await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]));
}

/** Someone else's key in a request, signed with one's own. */
async function forgedRequest(): Promise<string> {
  const own = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const foreign = await webcrypto.subtle.importKey(
    "spki",
    publicKey.export({ type: "spki", format: "der" }),
    { name: "ECDSA", namedCurve: "P-256" },
    true,
    ["verify"],
  );
  return (await requestFor({ privateKey: own.privateKey, publicKey: foreign })).csr;
}
