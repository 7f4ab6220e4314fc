// The node-facing listener with every certificate that could be shown to it. All of them get through
// the handshake; what becomes of the request is decided above TLS, anew each time.

import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AgentOptions } from "node:https";
import { connect } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import { reportResults, sendHeartbeat, waitForTasks } from "@holdfast/contracts/node/endpoints";
import { BOOT_HEADER, INSTANCE_HEADER, MOST_RESULTS_BODY_BYTES } from "@holdfast/contracts/node/limits";
import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog, type Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runApiJob } from "../../testkit/api/jobs.ts";
import { type Answer, heartbeatOf, makeKeyRequest, openClient, type TestClient } from "../../testkit/api/nodes.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { NodeServices } from "../src/api/context.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Authority, temporaryAuthority } from "../src/identity/authority.ts";
import { readKeyRequest } from "../src/identity/requests.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import { MOST_AT_ONCE } from "../src/node-api/identity-hook.ts";
import { createNodeListener, type NodeListener } from "../src/node-api/listener.ts";
import { type NodeCall, nodeRoute } from "../src/node-api/route.ts";
import { createNodeDirectory, type NodeDirectory } from "../src/nodes/directory/standings.ts";
import { moveNode } from "../src/nodes/directory/state.ts";

const HOUR_MS = 60 * 60_000;
let clockAheadMs = 0;
const now = () => Date.now() + clockAheadMs;

let system: Sql;
let authority: Authority;
let stranger: Authority;
let directory: NodeDirectory;
let url: string;
let log: Log;
let logged: () => string;
let metrics: ReturnType<typeof createMetrics>;
/** Every call that a handler got, and the held ones that are still open. */
let reached: { node: string; instanceId: string; bootId: string }[];
let onHeld: (call: NodeCall<typeof waitForTasks>) => void;

beforeAll(async () => {
  ({ system } = openRoles(await createTestDatabase()));
  const lines: string[] = [];
  logged = () => lines.join("");
  log = createLog({ process: "test", level: "trace", destination: { write: (line) => lines.push(line) } });
  const signals = await openSignals(system, log);
  directory = createNodeDirectory(system, signals, log);
  runApiJob("refresh-node-standings", signals, { nodes: { directory } as NodeServices });
  authority = temporaryAuthority(new Date(Date.now() - 100 * 24 * HOUR_MS));
  stranger = temporaryAuthority(new Date());
  metrics = createMetrics("test");
  ({ url } = await startListener(now, metrics));
  atEnd(async () => {
    await directory.stop();
    await signals.stop();
  });
});

/** The product's listener, with handlers of the test's own behind it. */
async function startListener(
  clock: () => number,
  metrics = createMetrics("test"),
): Promise<{ listener: NodeListener; url: string }> {
  const started = await createNodeListener({
    place: { bind: "127.0.0.1", url: "https://nodes.example.com:9443" },
    authority,
    directory,
    ticketKeys: Buffer.alloc(48, 3),
    log,
    metrics,
    now: clock,
  });
  const note = ({ node, instanceId, bootId }: Pick<NodeCall<unknown>, "node" | "instanceId" | "bootId">) =>
    reached.push({ node: node.id, instanceId, bootId });
  nodeRoute(started.api, sendHeartbeat, async (call): Promise<HeartbeatAnswer> => {
    note(call);
    return { server_time: "", node: { status: "active", reason: null }, cancel: [] };
  });
  nodeRoute(started.api, waitForTasks, async (call) => {
    note(call);
    onHeld(call);
    // Does not even look at its signal: the request must end all the same.
    return new Promise<never>(() => undefined);
  });
  nodeRoute(started.api, reportResults, async ({ body }) => ({
    verdicts: body.results.map(({ task_id }) => ({ task_id, verdict: "accepted" as const })),
  }));
  started.http.get("/v1/trust-bundle", async () => ({ roots: authority.trustBundle }));
  const port = await started.listen({ port: 0, portSetting: "HOLDFAST_TEST_PORT" });
  atEnd(() => started.stop());
  return { listener: started, url: `https://127.0.0.1:${port}` };
}

beforeEach(() => {
  clockAheadMs = 0;
  reached = [];
  onHeld = () => undefined;
});

async function addNode(): Promise<string> {
  const [org] = await system<{ id: string }[]>`
    INSERT INTO organizations (id, slug, name) VALUES (${uuidv7()}, ${`o-${uuidv7().slice(-12)}`}, 'Org') RETURNING id`;
  const id = uuidv7();
  await system`INSERT INTO nodes (id, org_id, name) VALUES (${id}, ${org?.id ?? ""}, 'machine')`;
  return id;
}

/** A key of the test's own, and a certificate for it from the CA given, issued at that time. */
async function certificateFor(
  nodeId: string,
  from: Authority = authority,
  at = new Date(),
): Promise<AgentOptions> {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const { chain } = from.issueToNode({ id: nodeId, publicKey }, at);
  return { cert: chain, key };
}

const client = (tls: AgentOptions): TestClient => openClient(url, { ca: [...authority.trustBundle], ...tls });

const heartbeat = (from: TestClient, nodeId: string, headers: Record<string, string> = {}): Promise<Answer> =>
  from.ask({ method: "POST", path: `/internal/v1/nodes/${nodeId}/heartbeat`, body: heartbeatOf(), headers });

/** Answers when the request is being held, with its answer to come. */
async function hold(from: TestClient, nodeId: string): Promise<{ answer: Promise<Answer>; signal: AbortSignal }> {
  const held = Promise.withResolvers<NodeCall<typeof waitForTasks>>();
  onHeld = held.resolve;
  const answer = from.ask({ path: `/internal/v1/nodes/${nodeId}/tasks/wait` });
  answer.catch(() => undefined);
  return { answer, signal: (await held.promise).signal() };
}

async function revoke(nodeId: string): Promise<void> {
  const moved = await system.begin((tx) => moveNode(tx, nodeId, "revoke"));
  if (!moved || "refused" in moved) throw new Error("not revoked");
  directory.changed(moved);
}

describe("a certificate shown to the node-facing listener", () => {
  it("ID-02 lets the node in that it was made for", async () => {
    const node = await addNode();
    const answer = await heartbeat(client(await certificateFor(node)), node);
    expect(answer.status).toBe(200);
    expect(reached).toEqual([{ node, instanceId: expect.any(String), bootId: "boot-1" }]);
  });

  it("ID-02 is refused with its own code, whatever is wrong with it, before any handler", async () => {
    const node = await addNode();
    const other = await addNode();
    const server = authority.issueToServer(["localhost"], new Date());
    const cases: [string, AgentOptions, number][] = [
      ["certificate_missing", {}, 401],
      ["certificate_untrusted", await certificateFor(node, stranger), 401],
      ["certificate_unusable", { cert: server.cert, key: server.key }, 401],
      ["certificate_not_yet_valid", await certificateFor(node, authority, new Date(Date.now() + HOUR_MS)), 401],
      ["cert_expired", await certificateFor(node, authority, new Date(Date.now() - 25 * HOUR_MS)), 401],
      ["certificate_unusable", await certificateFor(uuidv7()), 401],
      ["node_mismatch", await certificateFor(other), 403],
    ];
    for (const [code, tls, status] of cases) {
      const answer = await heartbeat(client(tls), node);
      expect([answer.body["code"], answer.status]).toEqual([code, status]);
      expect(answer.body["next_step"]).toBeTruthy();
      // An agent compares it with its own: another one means that something in between terminates TLS.
      const serial = tls.cert ? new X509Certificate(String(tls.cert)).serialNumber.toLowerCase() : null;
      expect(answer.body["details"]).toEqual({ received_serial: serial });
    }
    expect(reached).toEqual([]);
  });

  it("ID-02 is refused without a certificate on every path but the way to one, however it is spelled", async () => {
    const node = await addNode();
    const stranger = client({});
    for (const path of [
      "/",
      "/v1/me",
      "/metrics",
      "/healthz",
      `/%69nternal/v1/nodes/${node}/tasks/wait`,
      `/internal/v1/nodes/${node}/tasks/wait/../wait`,
      `/internal/v1/nodes/${node}/TASKS/wait`,
    ]) {
      expect((await stranger.ask({ path })).body["code"], path).toBe("certificate_missing");
    }
    expect((await stranger.ask({ path: "/v1/trust-bundle" })).status).toBe(200);
    const own = await certificateFor(await addNode());
    const elsewhere = await client(own).ask({ path: `/%69nternal/v1/nodes/${node}/tasks/wait` });
    expect(elsewhere.body["code"]).toBe("node_mismatch");
    expect(reached).toEqual([]);
  });

  it("ID-09 of a revoked node is refused as revoked, also when it has expired as well", async () => {
    const node = await addNode();
    const good = client(await certificateFor(node));
    const old = client(await certificateFor(node, authority, new Date(Date.now() - 25 * HOUR_MS)));
    expect((await heartbeat(good, node)).status).toBe(200);
    await revoke(node);
    expect((await heartbeat(good, node)).body["code"]).toBe("identity_revoked");
    expect((await heartbeat(old, node)).body["code"]).toBe("identity_revoked");
  });

  it("ID-09 is accepted if it was issued since the node was revoked, before this replica was notified", async () => {
    const node = await addNode();
    const before = client(await certificateFor(node));
    await heartbeat(before, node);
    await revoke(node);
    expect((await heartbeat(before, node)).body["code"]).toBe("identity_revoked");
    // Another replica enrolls it, and its notification is on the way.
    await system.begin((tx) => moveNode(tx, node, "enrolled"));
    expect((await heartbeat(client(await certificateFor(node)), node)).status).toBe(200);
  });

  it("ID-09 refusals are counted by code, and logged with the node only when the certificate is ours", async () => {
    const node = await addNode();
    const before = logged().length;
    await heartbeat(client(await certificateFor(node, stranger)), node);
    expect(logged().slice(before)).not.toContain(node);
    await heartbeat(client(await certificateFor(node, authority, new Date(Date.now() - 25 * HOUR_MS))), node);
    expect(logged().slice(before)).toContain(node);
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/holdfast_node_api_refusals_total\{code="cert_expired",process="test"\} [1-9]/);
    expect(text).not.toContain(node);
  });

  it("AGENT-06 every request says which process of which boot it comes from", async () => {
    const node = await addNode();
    const own = client(await certificateFor(node));
    const cases: Record<string, string>[] = [
      { [INSTANCE_HEADER]: "" },
      { [INSTANCE_HEADER]: "not-a-uuid" },
      { [BOOT_HEADER]: "" },
      { [BOOT_HEADER]: "b".repeat(65) },
    ];
    for (const headers of cases) {
      const answer = await heartbeat(own, node, headers);
      expect(answer.body, JSON.stringify(headers)).toMatchObject({ code: "invalid_request" });
    }
    expect(reached).toEqual([]);
  });

  it("SEC-03 is looked at only under a host name of the listener", async () => {
    const node = await addNode();
    const own = client({ ...(await certificateFor(node)), servername: "localhost" });
    for (const host of ["nodes.example.com:9443", "localhost", "[::1]:18442"]) {
      expect((await heartbeat(own, node, { host })).status, host).toBe(200);
    }
    expect((await heartbeat(own, node, { host: "rebind.example" })).body["code"]).toBe("host_refused");
  });
});

describe.each(["TLSv1.2", "TLSv1.3"] as const)("a resumed session over %s", (version) => {
  const only = { minVersion: version, maxVersion: version };

  async function resumed(from: TestClient, nodeId: string): Promise<Answer> {
    const before = from.socket();
    if (!before) throw new Error("there is no session to resume");
    before.destroy();
    if (!before.closed) await once(before, "close");
    const answer = await heartbeat(from, nodeId);
    expect(from.socket()).not.toBe(before);
    expect(from.socket()?.getProtocol()).toBe(version);
    expect(from.socket()?.isSessionReused()).toBe(true);
    return answer;
  }

  it("ID-02 works, and is refused once the certificate has expired", async () => {
    const node = await addNode();
    const own = client({ ...(await certificateFor(node)), ...only });
    expect((await heartbeat(own, node)).status).toBe(200);
    expect((await resumed(own, node)).status).toBe(200);
    clockAheadMs = 25 * HOUR_MS;
    const answer = await resumed(own, node);
    expect([answer.status, answer.body["code"]]).toEqual([401, "cert_expired"]);
  });

  it("ID-02 ends with its certificate even on the connection that is open", async () => {
    const node = await addNode();
    const own = client({ ...(await certificateFor(node)), ...only });
    expect((await heartbeat(own, node)).status).toBe(200);
    const connection = own.socket();
    clockAheadMs = 25 * HOUR_MS;
    expect((await heartbeat(own, node)).body["code"]).toBe("cert_expired");
    expect(own.socket()).toBe(connection);
  });

  it("ID-09 is refused once the node is revoked", async () => {
    const node = await addNode();
    const own = client({ ...(await certificateFor(node)), ...only });
    expect((await heartbeat(own, node)).status).toBe(200);
    await revoke(node);
    expect((await resumed(own, node)).body["code"]).toBe("identity_revoked");
  });

  it("ID-02 of a stranger stays a stranger's", async () => {
    const node = await addNode();
    const foreign = client({ ...(await certificateFor(node, stranger)), ...only });
    expect((await heartbeat(foreign, node)).body["code"]).toBe("certificate_untrusted");
    expect((await resumed(foreign, node)).body["code"]).toBe("certificate_untrusted");
  });
});

describe("the listener's own certificate", () => {
  it("ID-03 ID-14 is replaced when it was made by a clock that was ahead", async () => {
    const ahead = await startListener(() => now() + 14 * HOUR_MS);
    expect(await ahead.listener.renewIfDue(new Date(now() + 14 * HOUR_MS))).toBe(false);
    expect(await ahead.listener.renewIfDue(new Date(now()))).toBe(true);
    expect(await ahead.listener.renewIfDue(new Date(now()))).toBe(false);
  });

  it("ID-03 is replaced while it runs: open connections go on, new ones see the new one", async () => {
    const node = await addNode();
    // Started four days ago, as far as its certificate knows.
    const old = await startListener(() => now() - 4 * 24 * HOUR_MS);
    const connect = async () =>
      openClient(old.url, {
        ca: [...authority.trustBundle],
        ...(await certificateFor(node, authority, new Date(Date.now() - 4 * 24 * HOUR_MS))),
      });
    const first = await connect();
    expect((await heartbeat(first, node)).status).toBe(200);
    const before = first.socket()?.getPeerX509Certificate()?.serialNumber;
    const connection = first.socket();
    expect(await old.listener.renewIfDue(new Date(Date.now() - 3 * 24 * HOUR_MS))).toBe(false);
    expect(await old.listener.renewIfDue(new Date())).toBe(true);
    expect((await heartbeat(first, node)).status).toBe(200);
    expect(first.socket()).toBe(connection);
    const second = await connect();
    expect((await heartbeat(second, node)).status).toBe(200);
    const after = second.socket()?.getPeerX509Certificate()?.serialNumber;
    expect([typeof before, typeof after, before === after]).toEqual(["string", "string", false]);
  });

  it("ID-02 names the address that agents are given, and this machine", async () => {
    const node = await addNode();
    const own = client({ ...(await certificateFor(node)), servername: "nodes.example.com" });
    expect((await heartbeat(own, node)).status).toBe(200);
    const names = own.socket()?.getPeerX509Certificate()?.subjectAltName ?? "";
    for (const name of ["DNS:nodes.example.com", "DNS:localhost", "IP Address:127.0.0.1"]) {
      expect(names).toContain(name);
    }
  });
});

describe("a request that is being held", () => {
  it("ID-09 ends as revoked when its node is revoked", async () => {
    const node = await addNode();
    const { answer, signal } = await hold(client(await certificateFor(node)), node);
    await revoke(node);
    expect(await answer).toMatchObject({ status: 401, body: { code: "identity_revoked" } });
    expect(signal.reason).toMatchObject({ code: "identity_revoked" });
  });

  it("ID-09 ends as revoked when another replica revoked it and its notification was lost", async () => {
    const node = await addNode();
    const { answer } = await hold(client(await certificateFor(node)), node);
    await system.begin((tx) => moveNode(tx, node, "retire"));
    expect(await answer).toMatchObject({ status: 401, body: { code: "identity_retired" } });
  });

  it.for(["told", "not told"])("ID-09 ends when its node is fenced, also if the replica is %s", async (how) => {
    const node = await addNode();
    const { signal, answer } = await hold(client(await certificateFor(node)), node);
    const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    const fenced = await system.begin((tx) => moveNode(tx, node, "fence"));
    if (!fenced || "refused" in fenced) throw new Error("not fenced");
    if (how === "told") directory.changed(fenced);
    await ended;
    // Not an error: the handler returns what there is.
    expect(signal.reason).not.toBeInstanceOf(ApiError);
    await revoke(node);
    await answer;
  });

  it("ID-09 goes on when another node is revoked", async () => {
    const [node, other] = await Promise.all([addNode(), addNode()]);
    const { answer, signal } = await hold(client(await certificateFor(node)), node);
    await heartbeat(client(await certificateFor(other)), other);
    await revoke(other);
    expect(signal.aborted).toBe(false);
    await revoke(node);
    await answer;
  });

  it("TASK-02 ends when the server stops, so that the agent asks another replica", async () => {
    const node = await addNode();
    const stopping = await startListener(now);
    const own = openClient(stopping.url, { ca: [...authority.trustBundle], ...(await certificateFor(node)) });
    const { answer } = await hold(own, node);
    await stopping.listener.stop();
    expect(await answer).toMatchObject({ status: 503, body: { code: "shutting_down", retryable: true } });
  });

  it("TASK-02 tells its handler when the agent has gone", async () => {
    const node = await addNode();
    const own = client(await certificateFor(node));
    const { signal } = await hold(own, node);
    own.close();
    await expect.poll(() => signal.aborted).toBe(true);
  });
});

describe("a node that asks for too much at once", () => {
  const refusedAsGreedy = async () => {
    const counted = /refusals_total\{code="rate_limit_exceeded",process="test"\} (\d+)/;
    return Number(counted.exec(await metrics.registry.metrics())?.[1] ?? 0);
  };

  it("SEC-03 is told to slow down, gets in again later, and is nobody else's problem", async () => {
    const [greedy, other] = [await addNode(), await addNode()];
    const tls = { ca: [...authority.trustBundle], ...(await certificateFor(greedy)) };
    const many = openClient(url, { ...tls, maxSockets: 200 });
    const path = `/internal/v1/nodes/${greedy}/tasks/wait`;
    const asked = Array.from({ length: MOST_AT_ONCE + 6 }, () => many.ask({ path }));
    const refused = await Promise.race(asked);
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
    expect(refused.headers["retry-after"]).toBe("1");
    await expect.poll(() => reached.length).toBe(MOST_AT_ONCE);
    expect((await heartbeat(client(await certificateFor(other)), other)).status).toBe(200);
    many.close();
    await Promise.allSettled(asked);
    const again = openClient(url, tls);
    await expect.poll(async () => (await heartbeat(again, greedy)).status).toBe(200);
  });

  it("SEC-03 does not get round it by asking again and again over one connection", async () => {
    const node = await addNode();
    const tls = { ca: [...authority.trustBundle], ...(await certificateFor(node)) };
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", ...tls });
    atEnd(() => socket.destroy());
    await once(socket, "secureConnect");
    const head = `GET /internal/v1/nodes/${node}/tasks/wait HTTP/1.1\r\nhost: localhost\r\n${BOOT_HEADER}: b\r\n`;
    const before = await refusedAsGreedy();
    for (let n = 0; n < 3 * MOST_AT_ONCE; n += 1) socket.write(`${head}${INSTANCE_HEADER}: ${uuidv7()}\r\n\r\n`);
    await expect.poll(refusedAsGreedy).toBe(before + 2 * MOST_AT_ONCE);
    expect(reached.length).toBe(MOST_AT_ONCE);
    socket.destroy();
    const again = openClient(url, tls);
    await expect.poll(async () => (await heartbeat(again, node)).status).toBe(200);
  });
});

describe("a body", () => {
  it("TASK-04 of results may be as large as results are, and says so beyond", async () => {
    const node = await addNode();
    const own = client(await certificateFor(node));
    const result = (bytes: number) => ({
      results: [
        {
          task_id: uuidv7(),
          generation: 1,
          timings: {},
          outcome: { status: "succeeded", result: { text: "x".repeat(bytes) } },
        },
      ],
    });
    const post = (bytes: number) =>
      own.ask({ method: "POST", path: `/internal/v1/nodes/${node}/results`, body: result(bytes) });
    expect((await post(MOST_RESULTS_BODY_BYTES - 1_000)).status).toBe(200);
    const answer = await post(10 * 1024 * 1024);
    expect(answer).toMatchObject({
      status: 413,
      body: { code: "result_too_large", details: { limit_bytes: MOST_RESULTS_BODY_BYTES } },
    });
  });

  it("SEC-03 of anything else stays small", async () => {
    const node = await addNode();
    const own = client(await certificateFor(node));
    const body = { ...heartbeatOf(), text: "x".repeat(300_000) };
    const answer = await own.ask({ method: "POST", path: `/internal/v1/nodes/${node}/heartbeat`, body });
    expect(answer.body["code"]).toBe("body_too_large");
  });
});
