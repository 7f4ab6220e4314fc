// A real nginx in front of the nodes' listeners, as deploy/nginx configures it, with the certificates that
// `holdfast ingress` gets. The node is played by the test: it has the certificate and shows it to nginx.

import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask, listTasks } from "@holdfast/contracts/endpoints/tasks";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { CERTIFICATE_HEADER, gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { MOST_RESULT_BYTES } from "@holdfast/contracts/node/limits";
import { classify } from "@holdfast/node-agent/link/failures";
import { beforeAll, describe, expect, it } from "vitest";
import { openAuthority } from "../../../control-plane/src/identity/authority.ts";
import { readKeyRequest } from "../../../control-plane/src/identity/requests.ts";
import { openKeyring } from "../../../control-plane/src/mechanisms/sealing/keyring.ts";
import { join as joinAs } from "../../../node-agent/src/identity/join.ts";
import { lacks } from "../../../scripts/facilities.mjs";
import { startTestAgent } from "../../../testkit/agent/agent.ts";
import { someFacts } from "../../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../../testkit/api/api.ts";
import { endedTask } from "../../../testkit/api/ended-task.ts";
import {
  type Answer,
  enrollTestNode,
  heartbeatOf,
  hostFacts,
  makeKeyRequest,
  openClient,
  type TestClient,
  type TestNode,
  tokenOf,
} from "../../../testkit/api/nodes.ts";
import { endTask, newPlace, opened, type Place, takeTask } from "../../../testkit/api/terminals.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { SERVICE_TOKEN } from "../../../testkit/gateway/api.ts";
import {
  comeUp,
  connectClient,
  connectNode,
  dialNode,
  startTestGateway,
  type TestGateway,
} from "../../../testkit/gateway/gateway.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { aPerson } from "../support/command.ts";
import { type Nginx, prepareNginx } from "../support/nginx.ts";

const TOKEN = "an ingress token of at least thirty-two characters".replaceAll(" ", "-");

let api: TestApi;
let gateway: TestGateway;
let org: TestOrg;
let nginx: Nginx;
let url: string;
let roots: string[];
let environment: Record<string, string>;

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
const portOf = (address: string) => Number(new URL(address).port);
const without = lacks("nginx");

beforeAll(async () => {
  if (without) return;
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN, HOLDFAST_INGRESS_TOKEN: TOKEN } });
  gateway = await startTestGateway({ url: api.internalUrl });
  org = await createOrg(api, "kelp");
  nginx = await prepareNginx(
    {
      nodeApis: [portOf(api.nodeUrl)],
      gateways: [portOf(gateway.nodeUrl)],
      publicGateways: [portOf(gateway.url)],
      apis: [portOf(api.url), await startBreaking()],
    },
    "localhost",
  );
  environment = {
    HOLDFAST_API_INTERNAL_URL: api.internalUrl,
    HOLDFAST_INGRESS_TOKEN: TOKEN,
    HOLDFAST_INGRESS_NAME: "front",
    HOLDFAST_INGRESS_DIR: nginx.certificates,
    HOLDFAST_INGRESS_PID_FILE: nginx.pidFile,
  };
  await aPerson(environment).json(["ingress", "--once"]);
  await nginx.start();
  url = `https://localhost:${nginx.ports.nodeApi}`;
});

/** As an api that dies under every request. */
async function startBreaking(): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A node whose requests go by nginx. */
async function nodeBehind(tls: Record<string, unknown> = {}): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id);
  roots = node.tls.ca;
  return { ...node, client: openClient(url, { ...node.tls, ...tls }) };
}

const heartbeat = (from: TestClient, node: TestNode, headers: Record<string, string> = {}): Promise<Answer> =>
  from.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf(), headers });

describe.skipIf(without)("the certificates of an ingress", () => {
  it("ID-13 are got with a token that never leaves, by keys that stay, and stand in the audit", async () => {
    const [listener, own] = ["listener", "ingress"].map((name) => {
      const path = join(nginx.certificates, `${name}.pem`);
      expect(statSync(path).mode & 0o777).toBe(0o640);
      return new X509Certificate(readFileSync(path));
    });
    // The api says which names: those that nodes are told.
    expect(listener?.subjectAltName).toMatch(/^DNS:localhost, IP Address:127\.0\.0\.1, /);
    expect(own?.subjectAltName).toBe("URI:holdfast://ingress/front");
    expect([listener?.keyUsage, own?.keyUsage]).toEqual([["1.3.6.1.5.5.7.3.1"], ["1.3.6.1.5.5.7.3.2"]]);
    const { items } = await api.operator()(listPlatformAudit, { query: { action: "ingress.enroll" } });
    expect(items[0]).toMatchObject({ actor_name: "ingress front", result: "allowed", org_id: null });
    expect(JSON.stringify(items) + api.logged()).not.toContain(TOKEN);
  });

  it("ID-13 are not for the service token, nor for another, and not where there is no api", async () => {
    const elsewhere = { ...environment, HOLDFAST_API_INTERNAL_URL: "https://127.0.0.1:1" };
    expect((await aPerson(elsewhere).holdfast(["ingress", "--once"])).code).toBe(3);
    for (const HOLDFAST_INGRESS_TOKEN of [SERVICE_TOKEN, TOKEN.replace("an", "no")]) {
      const { code, stderr } = await aPerson({ ...environment, HOLDFAST_INGRESS_TOKEN }).holdfast([
        "ingress",
        "--once",
      ]);
      expect(code).toBe(1);
      expect(stderr).toContain("the same HOLDFAST_INGRESS_TOKEN");
    }
  });
});

describe.skipIf(without)("a node behind nginx", () => {
  it("ID-13 is known by its own certificate, whatever it writes into the header", async () => {
    const node = await nodeBehind();
    const other = await nodeBehind();
    expect((await heartbeat(node.client, node)).status).toBe(200);
    const forged = encodeURIComponent(other.tls.cert);
    expect((await heartbeat(node.client, node, { [CERTIFICATE_HEADER]: forged })).status).toBe(200);
    expect((await heartbeat(node.client, other, { [CERTIFICATE_HEADER]: forged })).body["code"]).toBe(
      "node_mismatch",
    );
    const nobody = openClient(url, { ca: roots });
    expect((await heartbeat(nobody, node, { [CERTIFICATE_HEADER]: forged })).body["code"]).toBe(
      "certificate_missing",
    );
    expect((await nobody.ask({ path: "/v1/trust-bundle" })).status).toBe(200);
  });

  it.for(["TLSv1.2", "TLSv1.3"] as const)("ID-13 is known on a resumed session too: %s", async (version) => {
    const node = await nodeBehind({ minVersion: version, maxVersion: version });
    expect((await heartbeat(node.client, node)).status).toBe(200);
    const before = node.client.socket();
    before?.destroy();
    if (before && !before.closed) await once(before, "close");
    expect((await heartbeat(node.client, node)).status).toBe(200);
    expect(node.client.socket()?.isSessionReused()).toBe(true);
    expect(node.client.socket()?.getProtocol()).toBe(version);
  });

  it("ID-13 hears the api's own reason, also of a certificate that nginx itself would refuse", async () => {
    const node = await nodeBehind();
    const expired = await expiredFor(node);
    expect((await heartbeat(openClient(url, expired), node)).body["code"]).toBe("cert_expired");
    await api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: "revoke" } });
    expect((await heartbeat(node.client, node)).body["code"]).toBe("identity_revoked");
  });

  it("ID-01 joins, as one of 200 from the proxy's address, while somebody guesses tokens from there", async () => {
    const from = await createOrg(api, "many");
    const tokens = await Promise.all(Array.from({ length: 200 }, () => tokenOf(api, from.id)));
    const machines = openClient(url, { rejectUnauthorized: false, maxSockets: 20 });
    const join = async (token: string, n: number) => {
      const { csr } = await makeKeyRequest();
      const body = { token, csr, facts: { ...hostFacts, hostname: `m-${n}` } };
      for (;;) {
        const { status } = await machines.ask({ method: "POST", path: "/v1/enroll", body });
        // A busy api may need more than the second that nginx gives it for a handshake; an agent asks again.
        if (status !== 503) return status;
      }
    };
    const guesses = await Promise.all(Array.from({ length: 70 }, (_, n) => join(`hfe_${"g".repeat(43)}`, n)));
    expect(guesses.filter((status) => status === 429)).toHaveLength(10);
    const answers = await Promise.all(tokens.map(join));
    expect(answers.filter((status) => status !== 200)).toEqual([]);
  });

  it("ID-13 holds its poll, takes its task and delivers a result of a megabyte", async () => {
    const node = await nodeBehind();
    expect((await heartbeat(node.client, node)).status).toBe(200);
    const polling = node.client.ask({ path: `${node.path("tasks/wait")}?wait=25&room=4&holding=` });
    const made = await api.operator(org.id)(createTask, {
      params: { node_id: node.id },
      body: { type: "node.noop" },
    });
    const [task] = (await polling).body["tasks"] as { task_id: string; generation: number }[];
    expect(task?.task_id).toBe(made.id);
    const outcome = { status: "succeeded", result: { text: "x".repeat(MOST_RESULT_BYTES - 1_000) } };
    const result = { task_id: made.id, generation: task?.generation, outcome, timings: {} };
    const answer = await node.client.ask({
      method: "POST",
      path: node.path("results"),
      body: { results: [result] },
    });
    expect(answer.body).toEqual({ verdicts: [{ task_id: made.id, verdict: "accepted" }] });
    const { finished_at } = await api.operator(org.id)(getTask, { params: { task_id: made.id }, query: {} });
    expect(finished_at).not.toBeNull();
  });
});

describe.skipIf(without)("a real agent behind nginx", () => {
  it.for(["stream", "poll"] as const)("AGENT-06 runs tasks over its link: %s", async (link) => {
    const client = api.operator(org.id);
    const stateDir = scratchDirectory();
    const { nodeId } = await joinAs({
      token: await tokenOf(api, org.id),
      apiUrl: url,
      stateDir,
      facts: someFacts,
    });
    const env = { HOLDFAST_NODE_API_URL: url, HOLDFAST_AGENT_LINK: link };
    const agent = await startTestAgent({ stateDir }, { env });
    const params = { node_id: nodeId };
    await expect.poll(() => client(getNode, { params })).toMatchObject({ status: "active", link });
    const metrics = await (await fetch(`${api.url}/metrics`)).text();
    const [, streams] = /^holdfast_node_connections\{.*reason="stream".*\} (\d+)$/m.exec(metrics) ?? [];
    expect(Number(streams)).toBe(link === "stream" ? 1 : 0);
    const body = { type: "node.noop", params: { echo: link, hold_ms: 200 } };
    const { id } = await client(createTask, { params, body });
    expect(await endedTask(client, id)).toMatchObject({ status: "completed", result: { echo: link } });
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_polls_failed_total 0");
    await agent.stop();
    await expect
      .poll(async () =>
        /^holdfast_node_connections\{.*reason="stream".*\} 0$/m.test(
          await (await fetch(`${api.url}/metrics`)).text(),
        ),
      )
      .toBe(true);
  });
});

/** By the installation's own CA, for a new key, a day and an hour ago. */
async function expiredFor(node: TestNode): Promise<{ cert: string; key: string; ca: string[] }> {
  const { system } = openRoles(api.database);
  const kek = { id: "local-1", key: Buffer.alloc(32, 7) };
  const keyring = await openKeyring(system, { current: kek, previous: undefined });
  const authority = await openAuthority(system, keyring, new Date());
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const at = new Date(Date.now() - 25 * 60 * 60_000);
  const issued = authority?.issueToNode({ id: node.id, publicKey }, at);
  return { cert: issued?.chain ?? "", key, ca: node.tls.ca };
}

describe.skipIf(without)("a terminal's stream behind nginx", () => {
  it("ID-13 is let in at the gateway by the certificate that nginx was shown, and not without", async () => {
    const place: Place = await newPlace(api, openRoles(api.database).superuser, org);
    const token = await tokenFor(api, org, "admin");
    const behind = { ...gateway, nodeUrl: `https://localhost:${nginx.ports.nodeTerminals}` };
    const params = { allocation_id: place.allocationId };
    const minted = await api.as(token)(createTerminalToken, { params, body: {} });
    const client = await connectClient(gateway, minted.token, { origin: "" });
    client.send({ type: "resize", cols: 90, rows: 20 });
    const task = await takeTask(place.node);
    const { ca } = place.node.tls;
    const stranger = await dialNode(behind, { nodeId: place.node.id, sessionId: minted.session_id }, { ca });
    expect(stranger).toMatchObject({ refused: { status: 401 } });
    const stream = await connectNode(behind, minted.session_id, {
      ...place.node.tls,
      id: place.node.id,
      serial: "",
    });
    await comeUp(stream);
    await client.next("ready");
    stream.type("from the node");
    await client.until("from the node");
    await endTask(place.node, task, opened);
  });
});

describe.skipIf(without)("renewal", () => {
  it("ID-13 reaches nginx by itself: what is open goes on, what comes next meets the new certificates", async () => {
    const node = await nodeBehind();
    await heartbeat(node.client, node);
    const before = node.client.socket()?.getPeerX509Certificate()?.serialNumber;
    const polling = node.client.ask({ path: `${node.path("tasks/wait")}?wait=25&room=4&holding=` });
    const child = spawn(process.execPath, [command, "ingress"], { env: environment, stdio: "ignore" });
    atEnd(() => child.kill("SIGKILL"));
    const serialNow = async () => {
      const fresh = openClient(url, { ...node.tls });
      const { status } = await heartbeat(fresh, node);
      const serial = fresh.socket()?.getPeerX509Certificate()?.serialNumber;
      fresh.close();
      return { status, renewed: serial !== before };
    };
    await expect.poll(serialNow).toEqual({ status: 200, renewed: true });
    const { id } = await api.operator(org.id)(createTask, {
      params: { node_id: node.id },
      body: { type: "node.noop" },
    });
    expect((await polling).body["tasks"]).toMatchObject([{ task_id: id }]);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });
});

describe.skipIf(without)("whoever is not a node", () => {
  it("OPS-02 creates once what has a key, though an api dies under it; what has none is not sent twice", async () => {
    const people = openClient(`https://localhost:${nginx.ports.public}`, { ca: roots });
    const node = await enrollTestNode(api, org.id);
    expect((await heartbeat(node.client, node)).status).toBe(200);
    const authorization = `Bearer ${await tokenFor(api, org, "admin")}`;
    const create = async (headers: Record<string, string>) => {
      const path = `/v1/nodes/${node.id}/tasks`;
      const request = { method: "POST", path, body: { type: "node.noop" } } as const;
      return (await people.ask({ ...request, headers: { ...headers, authorization } })).status;
    };
    const keyed = await Promise.all(
      Array.from({ length: 6 }, (_, count) => create({ "idempotency-key": `k${count}` })),
    );
    expect(keyed).toEqual(Array(6).fill(201));
    const bare = await Promise.all(Array.from({ length: 6 }, () => create({})));
    expect(bare).toContain(502);
    const { items } = await api.operator(org.id)(listTasks, { query: { node_id: node.id } });
    expect(items).toHaveLength(6 + bare.filter((each) => each === 201).length);
  });

  it("ID-13 finds that the public name hands nothing over: refused and in the audit", async () => {
    const people = openClient(`https://localhost:${nginx.ports.public}`, { ca: roots });
    // Of the gateway: clients of terminals ask whether it is reached by this name.
    expect(await people.ask({ path: "/healthz" })).toMatchObject({
      ...{ status: 200, headers: { [LISTENER_HEADER]: gatewayListeners.public } },
    });
    const headers = { [CERTIFICATE_HEADER]: "anything", "x-correlation-id": "forged-in-public" };
    expect((await people.ask({ path: "/v1/me", headers })).body["code"]).toBe("certificate_header_refused");
    const query = { action: "certificate_header.send", correlation_id: "forged-in-public" };
    await expect
      .poll(async () => (await api.operator()(listPlatformAudit, { query })).items)
      .toMatchObject([{ result: "denied", reason: "certificate_header_refused", details: { listener: "api" } }]);
  });

  it("AGENT-01 is told by nginx itself when no api answers, in words that no agent takes for a verdict", async () => {
    const node = await nodeBehind();
    expect((await heartbeat(node.client, node)).status).toBe(200);
    await api.stop();
    const outgoing = request(`${url}${node.path("tasks/wait")}`, { ...node.tls }).end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const [status, text] = [incoming.statusCode ?? 0, await readText(incoming)];
    expect([status, text, incoming.headers["retry-after"]]).toEqual([
      503,
      "The ingress reaches no api at the moment.\n",
      "2",
    ]);
    const answer = { kind: "answer", status, code: undefined, excerpt: text } as const;
    expect(classify({ ...answer, retryAfterSeconds: 2 })).toMatchObject({
      reason: "control_plane_unreachable",
      retryAfterMs: 2_000,
    });
  });
});
