// The CA over the lifetime of an installation: restarts, replicas that start together, a lost CA.

import { X509Certificate } from "node:crypto";
import { CallError } from "@holdfast/contracts/client";
import { createEnrollmentToken, enrollNode, getTrustBundle } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, tokenFor } from "../../testkit/api/api.ts";
import { enrollTestNode, heartbeatOf, hostFacts, makeKeyRequest, openClient } from "../../testkit/api/nodes.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { x509 } from "../../testkit/identity/x509.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Authority, openAuthority } from "../src/identity/authority.ts";
import { readKeyRequest } from "../src/identity/requests.ts";
import { type Keyring, openKeyring } from "../src/mechanisms/sealing/keyring.ts";

const DAY_MS = 24 * 60 * 60_000;
const kek = { id: "test", key: Buffer.alloc(32, 9) };

describe("the CA", () => {
  let system: Sql;
  let superuser: Sql;
  let keyring: Keyring;
  beforeAll(async () => {
    ({ system, superuser } = openRoles(await createTestDatabase()));
    keyring = await openKeyring(system, { current: kek });
  });

  async function open(now = new Date()): Promise<Authority> {
    const opened = await openAuthority(system, keyring, now);
    if (!opened) throw new Error("no CA");
    return opened;
  }

  async function leafOf(
    authority: Authority,
    now = new Date(),
  ): Promise<{ leaf: X509Certificate; chain: string }> {
    const { csr } = await makeKeyRequest();
    const { publicKey } = readKeyRequest(csr);
    const { chain } = authority.issueToNode({ id: "018f0000-0000-7000-8000-000000000000", publicKey }, now);
    return { leaf: new X509Certificate(chain), chain };
  }

  it("ID-17 is the same for replicas that start together, and after a restart", async () => {
    const replicas = await Promise.all(Array.from({ length: 4 }, () => open()));
    expect(new Set(replicas.map(({ rootDigest }) => rootDigest)).size).toBe(1);
    const [first] = replicas;
    const { leaf } = await leafOf(first as Authority);
    for (const other of [...replicas, await open()]) expect(other.hasIssued(leaf)).toBe(true);
  });

  it("ID-17 has a root of ten years that signs CAs only, and an issuing CA of two that signs leaves only", async () => {
    const authority = await open();
    const [rootPem = "", issuingPem = ""] = authority.certificates;
    const root = new x509.X509Certificate(rootPem);
    const issuing = new x509.X509Certificate(issuingPem);
    const years = (one: x509.X509Certificate) =>
      Math.round((one.notAfter.getTime() - one.notBefore.getTime()) / (365.25 * DAY_MS));
    expect([years(root), years(issuing)]).toEqual([10, 2]);
    const lengths = [root, issuing].map((one) => one.getExtension(x509.BasicConstraintsExtension)?.pathLength);
    expect(lengths).toEqual([1, 0]);
    expect(authority.trustBundle).toEqual([rootPem]);
    expect(await issuing.verify({ publicKey: root.publicKey, signatureOnly: true })).toBe(true);
  });

  it("ID-17 does not take a certificate of another CA of the same name for its own", async () => {
    const other = openRoles(await createTestDatabase());
    const elsewhere = await openAuthority(
      other.system,
      await openKeyring(other.system, { current: kek }),
      new Date(),
    );
    const { leaf } = await leafOf(elsewhere as Authority);
    expect((await open()).hasIssued(leaf)).toBe(false);
  });

  it("ID-17 gets a new issuing CA under the same root before the old one ends; both count", async () => {
    const before = await open();
    const { leaf } = await leafOf(before);
    const later = new Date(Date.now() + 700 * DAY_MS);
    const [after, replica] = await Promise.all([open(later), open(later)]);
    expect(after.rootDigest).toBe(before.rootDigest);
    expect(after.certificates).toHaveLength(3);
    expect(replica.certificates).toEqual(after.certificates);
    const renewed = await leafOf(after, later);
    expect([after.hasIssued(leaf), after.hasIssued(renewed.leaf), before.hasIssued(renewed.leaf)]).toEqual([
      true,
      true,
      false,
    ]);
    expect((await open()).certificates, "and is found by the next start").toHaveLength(3);
  });

  it("ID-17 is sealed: the database alone shows no private key", async () => {
    await open();
    const rows = await superuser`SELECT name, sealed_value FROM sealed_keys WHERE name LIKE 'ca:%'`;
    expect(rows.map((row) => row["name"])).toEqual(expect.arrayContaining(["ca:root", "ca:issuing"]));
    for (const row of rows) expect(String(row["sealed_value"])).not.toContain("PRIVATE KEY");
  });
});

describe("an api with nodes", () => {
  it("ID-17 knows them again after a restart: same CA, same certificate, heartbeats go on", async () => {
    const first = await startTestApi();
    const org = await createOrg(first, "ours");
    const node = await enrollTestNode(first, org.id);
    const { roots } = await first.operator()(getTrustBundle, {});
    await first.stop();
    const second = await startTestApi({ database: first.database });
    expect((await second.operator()(getTrustBundle, {})).roots).toEqual(roots);
    const client = openClient(second.nodeUrl, node.tls);
    const answer = await client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
    expect(answer).toMatchObject({ status: 200, body: { node: { status: "active" } } });
  });

  it("ID-17 but without any of its keys does not start, names the table that it lacks, and makes no new ones", async () => {
    const first = await startTestApi();
    const org = await createOrg(first, "ours");
    await enrollTestNode(first, org.id);
    await first.stop();
    const { superuser } = openRoles(first.database);
    await superuser`DELETE FROM sealed_keys`;
    await expect(startTestApi({ database: first.database })).rejects.toThrow(
      /table sealed_keys .* complete backup/,
    );
    expect(await superuser`SELECT FROM sealed_keys WHERE name LIKE 'ca:%'`).toHaveLength(0);
  });

  it("ID-17 but without their CA refuses to issue, says so, and makes no new one", async () => {
    const first = await startTestApi();
    const org = await createOrg(first, "ours");
    const token = (await first.operator(org.id)(createEnrollmentToken, { body: {} })).token;
    const node = await enrollTestNode(first, org.id);
    await first.stop();
    const { superuser } = openRoles(first.database);
    await superuser`DELETE FROM sealed_keys WHERE name LIKE 'ca:%'`;

    const second = await startTestApi({ database: first.database });
    const ready = await fetch(`${second.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ checks: { ca: { ok: false, reason: expect.any(String) } } });
    expect(second.logged()).toContain("no certificates are issued");
    const owner = second.as(await tokenFor(second, org, "owner"));
    const { csr } = await makeKeyRequest();
    const codeOf = (error: unknown) => (error instanceof CallError ? error.envelope.code : error);
    const attempts = await Promise.all([
      owner(createEnrollmentToken, { body: {} }).catch(codeOf),
      owner(getTrustBundle, {}).catch(codeOf),
      owner(enrollNode, { body: { token, csr, facts: hostFacts } }).catch(codeOf),
    ]);
    expect(attempts).toEqual(["ca_unavailable", "ca_unavailable", "ca_unavailable"]);
    // The agent sees that this is not the server it was enrolled with.
    const client = openClient(second.nodeUrl, node.tls);
    await expect(client.ask({ path: node.path("tasks/wait") })).rejects.toThrow(/certificate/);
    expect(await superuser`SELECT FROM sealed_keys WHERE name LIKE 'ca:%'`).toHaveLength(0);
    const detail = await owner(getNode, { params: { node_id: node.id } });
    expect(detail.id).toBe(node.id);
  });
});
