// Certificates that come in a header: from an ingress they are judged like those of a connection, from anybody
// else the request is refused.

import type { AgentOptions } from "node:https";
import { getTrustBundle } from "@holdfast/contracts/endpoints/enrollment";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { sendHeartbeat } from "@holdfast/contracts/node/endpoints";
import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Forgery } from "@holdfast/service/forgeries";
import { createLog } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { markOfIngressToken } from "@holdfast/service/service-proof";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, heartbeatOf, makeKeyRequest, openClient, type TestClient } from "../../testkit/api/nodes.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { gatewayCertificate } from "../../testkit/gateway/gateway.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Authority, temporaryAuthority } from "../src/identity/authority.ts";
import { readKeyRequest } from "../src/identity/requests.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import { createNodeListener } from "../src/node-api/listener.ts";
import { nodeRoute } from "../src/node-api/route.ts";
import { createNodeDirectory, type NodeDirectory } from "../src/nodes/directory/standings.ts";
import { moveNode } from "../src/nodes/directory/state.ts";

const HOUR_MS = 60 * 60_000;
const MARK = markOfIngressToken("the ingress token of this installation");
let clockAheadMs = 0;

let system: Sql;
let authority: Authority;
let directory: NodeDirectory;
let url: string;
let withoutIngress: string;
let forged: Forgery[];
let addresses: string[];
let reached: string[];
/** Of the same requests. */
let ingresses: (string | null)[] = [];

beforeAll(async () => {
  ({ system } = openRoles(await createTestDatabase()));
  const log = createLog({ process: "test", level: "silent" });
  const signals = await openSignals(system, log);
  directory = createNodeDirectory(system, signals, log);
  authority = temporaryAuthority(new Date(Date.now() - 100 * 24 * HOUR_MS));
  const start = async (ingressMark: string | undefined) => {
    const listener = await createNodeListener({
      place: { bind: "127.0.0.1", url: undefined },
      ...{ authority, directory, log, ingressMark },
      ticketKeys: Buffer.alloc(48, 3),
      metrics: createMetrics("test"),
      now: () => Date.now() + clockAheadMs,
      onForged: (forgery) => forged.push(forgery),
    });
    nodeRoute(listener.api, sendHeartbeat, async ({ node }): Promise<HeartbeatAnswer> => {
      reached.push(node.id);
      ingresses.push(node.ingress);
      return { server_time: "", node: { status: "active", reason: null }, cancel: [] };
    });
    listener.http.get(getTrustBundle.path, async ({ raw }) => {
      addresses.push(listener.addressOf(raw));
      return { roots: authority.trustBundle };
    });
    const port = await listener.listen({ port: 0, portSetting: "HOLDFAST_TEST_PORT" });
    atEnd(() => listener.stop());
    return `https://127.0.0.1:${port}`;
  };
  url = await start(MARK);
  withoutIngress = await start(undefined);
  atEnd(async () => {
    await directory.stop();
    await signals.stop();
  });
});

beforeEach(() => {
  clockAheadMs = 0;
  forged = [];
  addresses = [];
  reached = [];
  ingresses = [];
});

async function addNode(): Promise<string> {
  const [org] = await system<{ id: string }[]>`
    INSERT INTO organizations (id, slug, name) VALUES (${uuidv7()}, ${`o-${uuidv7().slice(-12)}`}, 'Org') RETURNING id`;
  const id = uuidv7();
  await system`INSERT INTO nodes (id, org_id, name) VALUES (${id}, ${org?.id ?? ""}, 'machine')`;
  return id;
}

type Certificate = { cert: string; key: string };

async function forNode(id: string, from = authority, at = new Date()): Promise<Certificate> {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  return { cert: from.issueToNode({ id, publicKey }, at).chain, key };
}

async function forIngress(mark = MARK, at = new Date()): Promise<Certificate> {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const listener = { names: ["localhost"], publicKey };
  const { chain } = authority.issueToIngress({ name: "nginx", mark, publicKey, listener }, at);
  return { cert: chain, key };
}

/** As nginx writes it. */
const escaped = (pem: string) =>
  encodeURIComponent(pem.endsWith("\n") ? pem : `${pem}\n`).replace(/[!'()*]/g, (one) => one);
const leafOf = ({ cert }: Certificate) =>
  `${cert.split("-----END CERTIFICATE-----")[0]}-----END CERTIFICATE-----\n`;

const connect = (tls: AgentOptions, to = url): TestClient =>
  openClient(to, { ca: [...authority.trustBundle], ...tls });
const heartbeat = (from: TestClient, nodeId: string, header: string | string[]): Promise<Answer> =>
  from.ask({
    method: "POST",
    path: `/internal/v1/nodes/${nodeId}/heartbeat`,
    body: heartbeatOf(),
    // Several values are several lines.
    headers: { [CERTIFICATE_HEADER]: header as string },
  });

describe("a certificate that an ingress hands over", () => {
  it("ID-13 lets the node in, request by request over one connection", async () => {
    const ingress = connect(await forIngress());
    const nodes = [await addNode(), await addNode()];
    const certificates = await Promise.all(nodes.map((id) => forNode(id)));
    for (const [index, id] of [...nodes.entries(), ...nodes.entries()]) {
      const answer = await heartbeat(ingress, id, escaped(leafOf(certificates[index] as Certificate)));
      expect(answer.status).toBe(200);
    }
    expect(reached).toEqual([...nodes, ...nodes]);
    const other = await heartbeat(ingress, nodes[0] ?? "", escaped(leafOf(certificates[1] as Certificate)));
    expect(other.body["code"]).toBe("node_mismatch");
    expect(forged).toEqual([]);
  });

  it("DRIFT-04 tells which ingress the node came through, if any", async () => {
    const id = await addNode();
    const certificate = await forNode(id);
    await heartbeat(connect(await forIngress()), id, escaped(leafOf(certificate)));
    await connect(certificate).ask({
      ...{ method: "POST", path: `/internal/v1/nodes/${id}/heartbeat`, body: heartbeatOf() },
    });
    expect(ingresses).toEqual(["nginx", null]);
  });

  it("ID-13 is judged as one that a connection shows, with the same codes", async () => {
    const ingress = connect(await forIngress());
    const node = await addNode();
    const revoked = await addNode();
    const moved = await system.begin((tx) => moveNode(tx, revoked, "revoke"));
    if (!moved || "refused" in moved) throw new Error("not revoked");
    directory.changed(moved);
    const stranger = temporaryAuthority(new Date());
    const server = authority.issueToServer(["localhost"], new Date());
    const cases: [string, string, Certificate][] = [
      ["certificate_untrusted", node, await forNode(node, stranger)],
      ["certificate_unusable", node, server],
      ["certificate_unusable", node, await forIngress()],
      ["certificate_unusable", node, await forNode(uuidv7())],
      ["certificate_not_yet_valid", node, await forNode(node, authority, new Date(Date.now() + HOUR_MS))],
      ["cert_expired", node, await forNode(node, authority, new Date(Date.now() - 25 * HOUR_MS))],
      ["identity_revoked", revoked, await forNode(revoked)],
    ];
    for (const [code, id, certificate] of cases) {
      const answer = await heartbeat(ingress, id, escaped(leafOf(certificate)));
      expect([answer.status, answer.body["code"]]).toEqual([401, code]);
    }
    const none = await ingress.ask({ method: "POST", path: `/internal/v1/nodes/${node}/heartbeat`, body: {} });
    expect(none.body["code"]).toBe("certificate_missing");
    const good = escaped(leafOf(await forNode(node)));
    expect((await heartbeat(ingress, node, good)).status).toBe(200);
    clockAheadMs = 25 * HOUR_MS;
    expect((await heartbeat(ingress, node, good)).body["code"]).toBe("cert_expired");
    expect(reached).toEqual([node]);
  });

  it("ID-13 is one certificate, once, and nothing beside it", async () => {
    const ingress = connect(await forIngress());
    const node = await addNode();
    const certificate = await forNode(node);
    const leaf = leafOf(certificate);
    const der = Buffer.from(leaf.replace(/-----[^-]+-----|\n/g, ""), "base64");
    const longer = Buffer.concat([der, Buffer.from("and more")]).toString("base64");
    for (const header of [
      [escaped(leaf), escaped(leaf)],
      escaped(certificate.cert),
      escaped(`${leaf}${certificate.key}`),
      escaped(`-----BEGIN CERTIFICATE-----\n${longer}\n-----END CERTIFICATE-----\n`),
      escaped(leaf.replace("CERTIFICATE-----", "TRUSTED CERTIFICATE-----")),
      `${escaped(leaf)},${escaped(leaf)}`,
      der.toString("base64"),
      "%zz",
      "",
    ]) {
      const answer = await heartbeat(ingress, node, header);
      expect([answer.status, answer.body["code"]], String(header)).toEqual([403, "certificate_header_refused"]);
    }
    expect(reached).toEqual([]);
    expect(forged).toHaveLength(9);
  });

  it("ID-13 comes with the client's address, which is believed of an ingress only", async () => {
    const headers = { "x-forwarded-for": "192.0.2.7" };
    await connect(await forIngress()).ask({ path: getTrustBundle.path, headers });
    await connect({}).ask({ path: getTrustBundle.path, headers });
    await connect(await forIngress(markOfIngressToken("the token before"))).ask({
      path: getTrustBundle.path,
      headers,
    });
    expect(addresses).toEqual(["192.0.2.7", "127.0.0.1", "127.0.0.1"]);
  });
});

describe("an ingress whose own certificate is no longer accepted", () => {
  it("ID-13 is told so, in a way that no node takes for its own certificate", async () => {
    const node = await addNode();
    const header = escaped(leafOf(await forNode(node)));
    const expired = connect(await forIngress(MARK, new Date(Date.now() - 8 * 24 * HOUR_MS)));
    const ofAnotherToken = connect(await forIngress(markOfIngressToken("the token before")));
    const current = connect(await forIngress());
    for (const ingress of [expired, ofAnotherToken]) {
      const answer = await heartbeat(ingress, node, header);
      expect([answer.status, answer.body["code"]]).toEqual([503, "ingress_identity_refused"]);
    }
    expect((await heartbeat(current, node, header)).status).toBe(200);
    clockAheadMs = 8 * 24 * HOUR_MS;
    expect((await heartbeat(current, node, header)).body["code"]).toBe("ingress_identity_refused");
    expect([forged, reached]).toEqual([[], [node]]);
  });
});

describe("a certificate in a header from anybody else", () => {
  it("ID-13 is refused and told of, whatever the connection shows, on every path", async () => {
    const node = await addNode();
    const own = await forNode(node);
    const header = escaped(leafOf(own));
    const service = authority.issueToServer(["localhost"], new Date());
    const callers: [AgentOptions, string][] = [
      [{}, url],
      [own, url],
      [service, url],
      // Gateways trust each other with it, the api trusts none.
      [await gatewayCertificate(authority), url],
      [await forNode(node, temporaryAuthority(new Date())), url],
      // Without an ingress token there is no ingress.
      [await forIngress(), withoutIngress],
    ];
    for (const [tls, to] of callers) {
      const caller = connect(tls, to);
      const answer = await heartbeat(caller, node, header);
      expect([answer.status, answer.body["code"]]).toEqual([403, "certificate_header_refused"]);
      for (const path of [getTrustBundle.path, "/v1/enroll", "/nowhere"]) {
        const elsewhere = await caller.ask({ path, headers: { [CERTIFICATE_HEADER]: "" } });
        expect(elsewhere.body["code"], path).toBe("certificate_header_refused");
      }
    }
    expect(forged).toHaveLength(callers.length * 4);
    expect(forged[0]).toEqual({ address: "127.0.0.1", correlationId: expect.any(String) });
    expect([reached, addresses]).toEqual([[], []]);
    expect((await connect(own).ask({ path: "/" })).body["code"]).toBe("route_not_found");
  });
});
