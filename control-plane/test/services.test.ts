// The internal listener: who gets a service certificate, whose requests are accepted, and which news gateways get.

import { X509Certificate } from "node:crypto";
import { pathOf } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { announceGateway, enrollService, serviceEndpoints } from "@holdfast/contracts/internal/endpoints";
import { nodeApiEndpoints } from "@holdfast/contracts/node/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { isSameProof, proofOfAnswer } from "@holdfast/service/service-proof";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import {
  enrollTestNode,
  heartbeatOf,
  makeKeyRequest,
  openClient,
  sendHeartbeatFrom,
  tokenOf,
} from "../../testkit/api/nodes.ts";
import {
  enrollGateway,
  enrollment,
  NODE_TERMINAL_URL,
  SERVICE_TOKEN,
  type TestGateway,
} from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { temporaryAuthority } from "../src/identity/authority.ts";
import { readKeyRequest } from "../src/identity/requests.ts";
import { createInternalListener } from "../src/internal-api/listener.ts";
import { internalRoute } from "../src/internal-api/route.ts";

let api: TestApi;
let kelp: TestOrg;
let gateway: TestGateway;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser } = openRoles(api.database));
  kelp = await createOrg(api, "kelp");
  gateway = await enrollGateway(api);
});

const stranger = () => openClient(api.internalUrl, { rejectUnauthorized: false });
const enroll = (body: unknown) => stranger().ask({ method: "POST", path: enrollService.path, body });

describe("enrolling a service", () => {
  it("SEC-04 issues a certificate for both ends of TLS, valid for a day, to a process that knows the token", async () => {
    const { request, body } = await enrollment({
      names: ["terminals.example.com", "10.0.0.5", "a b", "x, URI:y"],
    });
    const { status, body: answer } = await enroll(body);
    expect(status).toBe(200);
    const { mac, ...identity } = answer as Record<string, string | string[]>;
    expect(isSameProof(String(mac), proofOfAnswer(SERVICE_TOKEN, request.nonce, identity))).toBe(true);
    const leaf = new X509Certificate(String(identity["certificate"]));
    expect(leaf.subject).toBe("CN=gateway");
    expect(leaf.subjectAltName).toBe(
      `URI:holdfast://service/gateway/${request.instance_id}, DNS:terminals.example.com, IP Address:10.0.0.5`,
    );
    expect(leaf.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.1"]);
    const hours = (leaf.validToDate.getTime() - Date.now()) / 3_600_000;
    expect(Math.round(hours)).toBe(24);
    expect(identity["authorities"]).toHaveLength(2);
  });

  it("SEC-04 refuses a proof by another token, of another request, or of another time", async () => {
    const wrong = await enrollment({}, "another token that is long enough");
    const right = await enrollment();
    const old = await enrollment({ sent_at: new Date(Date.now() - 121_000).toISOString() });
    const ahead = await enrollment({ sent_at: new Date(Date.now() + 180_000).toISOString() });
    const tampered = { ...right.body, names: ["api.example.com"] };
    for (const body of [wrong.body, tampered, old.body, ahead.body]) {
      expect(await enroll(body)).toMatchObject({ status: 401, body: { code: "service_token_wrong" } });
    }
  });

  it("SEC-04 refuses what is no request for a key", async () => {
    const { body } = await enrollment({ csr: "nonsense" });
    expect(await enroll(body)).toMatchObject({ status: 400, body: { code: "csr_invalid" } });
  });

  it("SEC-03 writes neither the token nor a proof into the log", async () => {
    const { body } = await enrollment();
    await enroll(body);
    expect(api.logged()).toContain("issued a service certificate");
    for (const secret of [SERVICE_TOKEN, body.mac]) expect(api.logged()).not.toContain(secret);
  });
});

describe("which requests are accepted", () => {
  const announcement = { instance_id: uuidv7(), terminal_url: "ws://a/b", node_url: "https://a", sessions: 0 };
  const ask = (tls: object) =>
    openClient(api.internalUrl, { rejectUnauthorized: false, ...tls }).ask({
      method: "POST",
      path: announceGateway.path,
      body: announcement,
    });

  it("SEC-04 shows a certificate by our CA for the names it is reached by", async () => {
    expect((await gateway.announce()).status).toBe(200);
    const leaf = gateway.client.socket()?.getPeerX509Certificate();
    expect(leaf?.subjectAltName).toContain("DNS:localhost");
    expect(leaf?.checkIP("127.0.0.1")).toBe("127.0.0.1");
  });

  it("SEC-04 refuses a connection without a certificate, with a node's, and with a stranger's", async () => {
    const node = await enrollTestNode(api, kelp.id);
    const foreign = temporaryAuthority(new Date());
    const { key, csr } = await makeKeyRequest();
    const { publicKey } = readKeyRequest(csr);
    const service = { name: "gateway", instanceId: announcement.instance_id, names: [], publicKey } as const;
    const { chain } = foreign.issueToService(service, new Date());
    for (const tls of [{}, { cert: node.tls.cert, key: node.tls.key }, { cert: chain, key }]) {
      expect(await ask(tls)).toMatchObject({ status: 401, body: { code: "service_identity_refused" } });
    }
  });

  it("SEC-04 lets a gateway speak for itself only", async () => {
    const refused = await gateway.announce({ instance_id: uuidv7() });
    expect(refused).toMatchObject({ status: 401, body: { code: "service_identity_refused" } });
  });

  it("SEC-04 is no node to the node-facing listener", async () => {
    const { cert, key, ca } = gateway.tls;
    const asNode = openClient(api.nodeUrl, { cert, key, ca });
    const answer = await asNode.ask({ path: `/internal/v1/nodes/${uuidv7()}/tasks/wait` });
    expect(answer).toMatchObject({ status: 401, body: { code: "certificate_unusable" } });
  });

  it("SEC-04 judges the dates anew on every request of a connection", async () => {
    let now = Date.now();
    const authority = temporaryAuthority(new Date(now - 1000));
    const log = createLog({ process: "test", level: "fatal" });
    const listener = await createInternalListener({
      ...{ authority, log, metrics: createMetrics("test"), now: () => now },
      ticketKeys: Buffer.alloc(48, 3),
      place: { bind: "127.0.0.1", url: undefined },
    });
    internalRoute(listener.api, announceGateway, async () => ({
      origins: [],
      ticket_keys: "",
      ingress_mark: null,
    }));
    const port = await listener.listen({ port: 0, portSetting: "HOLDFAST_TEST_PORT" });
    atEnd(() => listener.stop());
    const { key, csr } = await makeKeyRequest();
    const { publicKey } = readKeyRequest(csr);
    const service = { name: "gateway", instanceId: announcement.instance_id, names: [], publicKey } as const;
    const { chain } = authority.issueToService(service, new Date(now));
    const client = openClient(`https://127.0.0.1:${port}`, { cert: chain, key, ca: [...authority.trustBundle] });
    const announce = () => client.ask({ method: "POST", path: announceGateway.path, body: announcement });
    expect((await announce()).status).toBe(200);
    const connection = client.socket();
    now += 25 * 3_600_000;
    expect(await announce()).toMatchObject({ status: 401, body: { code: "service_identity_refused" } });
    expect(client.socket()).toBe(connection);
    expect(await listener.renewIfDue(new Date(now + 4 * 86_400_000))).toBe(true);
  });
});

describe("listeners", () => {
  const uuid = uuidv7();
  const ids = { org_id: uuid, session_id: uuid, node_id: uuid, task_id: uuid };

  it("SEC-04 have no internal route on the public and the node-facing one", async () => {
    const node = await enrollTestNode(api, kelp.id);
    for (const endpoint of serviceEndpoints) {
      const path = pathOf(endpoint, ids);
      const init = { method: endpoint.method, headers: { authorization: `Bearer ${api.operatorToken}` } };
      const response = await fetch(api.url + path, init);
      expect([response.status, ((await response.json()) as { code: string }).code], path).toEqual([
        404,
        "route_not_found",
      ]);
      const onNodes = await node.client.ask({ method: endpoint.method, path });
      expect([onNodes.status, onNodes.body["code"]], path).toEqual([404, "route_not_found"]);
    }
  });

  it("SEC-04 have no public or node-facing route on the internal one", async () => {
    for (const endpoint of [...allEndpoints, ...nodeApiEndpoints]) {
      const { status, body } = await gateway.client.ask({ method: endpoint.method, path: pathOf(endpoint, ids) });
      expect([status, body["code"]], endpoint.name).toEqual([404, "route_not_found"]);
    }
  });

  it("SEC-04 are two only, where there is no service token", async () => {
    const without = await startTestApi();
    expect(without.internalUrl).toBe("https://127.0.0.1:undefined");
  });
});

describe("a gateway's announcement", () => {
  it.for(["ws://a;base-uri/v1/terminal", "ws://a,b/v1/terminal", "wss://*/v1/terminal", "wss://a'b/v1/terminal"])(
    "SEC-04 says nothing in the policy of pages but where it is: not %s",
    async (terminal_url) => {
      expect(await gateway.announce({ terminal_url })).toMatchObject({ status: 400 });
    },
  );

  it("TERM-04 becomes the address that nodes get with their next heartbeat", async () => {
    const node = await enrollTestNode(api, kelp.id);
    const answer = await gateway.announce();
    expect(answer.body["origins"]).toContain(api.url);
    expect(Buffer.from(String(answer.body["ticket_keys"]), "base64")).toHaveLength(48);
    const published = async () =>
      (await sendHeartbeatFrom(node)).body["profile"] as { endpoints: object; version: number };
    expect((await published()).endpoints).toMatchObject({ node_terminal: NODE_TERMINAL_URL });
    const { version } = await published();
    await gateway.announce();
    expect((await published()).version).toBe(version);
    const restarted = await enrollGateway(api);
    await restarted.announce({ node_url: "https://127.0.0.1:28443" });
    await gateway.announce();
    expect(await published()).toMatchObject({
      version: version + 1,
      endpoints: { node_terminal: "https://127.0.0.1:28443", node_api: api.nodeUrl },
    });
    await superuser`UPDATE gateways SET last_seen_at = now() - interval '31 seconds' WHERE id = ${restarted.id}`;
    await gateway.announce();
    expect((await published()).endpoints).toMatchObject({ node_terminal: NODE_TERMINAL_URL });
  });

  it("TERM-04 stays known to a node whose heartbeat goes to a replica that has not read it yet", async () => {
    const replica = await startTestApi({ database: api.database });
    const node = await enrollTestNode(api, kelp.id);
    const elsewhere = openClient(replica.nodeUrl, node.tls);
    await gateway.announce({ node_url: "https://127.0.0.1:48443" });
    const profile = (await sendHeartbeatFrom(node)).body["profile"] as { version: number };
    const heartbeat = heartbeatOf({ profile: { name: "default", version: profile.version } });
    const answer = await elsewhere.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeat });
    expect(answer.status).toBe(200);
    expect(answer.body["profile"]).toBeUndefined();
    await gateway.announce();
    await replica.stop();
  });

  it("TERM-04 must name addresses of the right kind", async () => {
    for (const wrong of [{ node_url: "http://127.0.0.1:1" }, { terminal_url: "https://127.0.0.1/x" }]) {
      expect(await gateway.announce(wrong)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    }
  });
});

describe("news", () => {
  it("SEC-04 reports at once that the stream is alive, and each node that is revoked or enrolled again", async () => {
    const node = await enrollTestNode(api, kelp.id);
    const news = await gateway.follow();
    expect(news.headers["content-type"]).toBe("application/x-ndjson; charset=utf-8");
    expect(news.headers["x-correlation-id"]).toBeTruthy();
    expect(await news.next(() => true)).toMatchObject({ type: "alive" });
    const revoke = { params: { node_id: node.id }, body: { change: "revoke" } } as const;
    const revoked = () => news.next((line) => line.type === "node_revoked" && line.node_id === node.id);
    const [line] = await Promise.all([revoked(), api.operator(kelp.id)(changeNode, revoke)]);
    expect(line).toEqual({ type: "node_revoked", node_id: node.id });
    const token = await tokenOf(api, kelp.id, node.id);
    await Promise.all([revoked(), enrollTestNode(api, kelp.id, { token, nodeId: node.id })]);
    news.stop();
  });

  it("SEC-04 reports a revocation made by another replica, or whose signal was lost", async () => {
    const node = await enrollTestNode(api, kelp.id);
    const news = await gateway.follow();
    await superuser`
      UPDATE nodes SET status = 'quarantined', revoked_at = now(), status_changed_at = now() WHERE id = ${node.id}`;
    const line = await news.next((one) => one.type === "node_revoked" && one.node_id === node.id);
    expect(line).toEqual({ type: "node_revoked", node_id: node.id });
    news.stop();
  });

  it("SEC-04 ends when the server stops", async () => {
    const own = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
    const news = await (await enrollGateway(own)).follow();
    await news.next(() => true);
    await Promise.all([news.ended, own.stop()]);
    await expect(news.next(() => true)).rejects.toThrow();
  });
});
