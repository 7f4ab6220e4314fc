// Whoever knocks with a certificate that our CA did not sign: a claim, or proof that a certificate of ours is not trusted any
// more.

import { X509Certificate } from "node:crypto";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { certificateFor } from "../../testkit/api/certificates.ts";
import {
  enrollTestNode,
  heartbeatOf,
  openClient,
  sendHeartbeatFrom,
  type TestNode,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { temporaryAuthority } from "../src/identity/authority.ts";

let api: TestApi;
let org: TestOrg;
let superuser: Sql;
const stranger = temporaryAuthority(new Date());

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "knocking");
});

const explained = ({ id }: TestNode) => api.operator(org.id)(explainNode, { params: { node_id: id } });
const knock = async (node: TestNode, own: { cert: string; key: string }) => {
  const client = openClient(api.nodeUrl, { ...node.tls, ...own });
  const answer = await client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
  expect(answer).toMatchObject({ status: 401, body: { code: "certificate_untrusted" } });
};
const stored = ({ id }: TestNode) => superuser<{ key: string; detail: Record<string, string> }[]>`
  SELECT key, detail FROM node_observations WHERE node_id = ${id} AND kind = 'refusal'`;

describe("a certificate of an unknown issuer", () => {
  it("ID-14 is shown with the node that it names, and changes nothing about that node", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    const before = await explained(node);
    for (const _ of [1, 2, 3]) await knock(node, await certificateFor(node.id, stranger));
    await expect.poll(() => stored(node)).toHaveLength(1);
    const { causes, evidence, parts, headline } = await explained(node);
    expect(evidence).toContainEqual(
      expect.objectContaining({
        ...{ kind: "refusal", key: "unknown_issuer", value: "certificate_untrusted" },
        detail: expect.objectContaining({
          ...{ issuer: "unknown", address: "127.0.0.1" },
          text: "Somebody presents a certificate of an unknown issuer for this node.",
        }),
      }),
    );
    expect([causes, parts, headline]).toEqual([before.causes, before.parts, before.headline]);
  });

  it("SEC-03 cannot fill the evidence: from one address only some are stored, of nodes that exist", async () => {
    const nodes = await Promise.all(Array.from({ length: 12 }, () => enrollTestNode(api, org.id)));
    for (const node of nodes) await knock(node, await certificateFor(node.id, stranger));
    // One was stored before, from the same address.
    const count = async () => (await Promise.all(nodes.map(stored))).flat().length;
    await expect.poll(count).toBe(9);
  });
});

describe("a certificate that we issued with a CA that is lost", () => {
  it("DRIFT-07 proves that the node is there and that we no longer trust it", async () => {
    // Of its own, for the limit of one address.
    const other = await startTestApi();
    const { superuser: root } = openRoles(other.database);
    const { id: orgId } = await createOrg(other, "earlier");
    const node = await enrollTestNode(other, orgId);
    await sendHeartbeatFrom(node);
    await root`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    const own = await certificateFor(node.id, stranger);
    const serial = new X509Certificate(own.cert).serialNumber.toLowerCase();
    await root`
      INSERT INTO node_certificates (serial, org_id, node_id, key_sha256, chain, issued_for, not_before, not_after)
      VALUES (${serial}, ${orgId}, ${node.id}, '\\x00', ${own.cert}, 'renewal', now(), now() + interval '1 day')`;
    const client = openClient(other.nodeUrl, { ...node.tls, ...own });
    await client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
    const explanation = () => other.operator(orgId)(explainNode, { params: { node_id: node.id } });
    await expect
      .poll(async () => (await explanation()).causes)
      .toMatchObject([
        { reason: "cert_untrusted_by_ingress", confidence: "high", symptoms: [{ reason: "agent_down" }] },
      ]);
    expect((await explanation()).evidence).toContainEqual(
      expect.objectContaining({
        kind: "refusal",
        key: null,
        detail: expect.objectContaining({ issuer: "earlier" }),
      }),
    );
  });
});
