// Streams on the node-facing listener, as a good agent, a hostile one and a dying one use them.

import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import { sendHeartbeat } from "@holdfast/contracts/node/endpoints";
import { streamCloseCodes } from "@holdfast/contracts/node/stream";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { authorityOf, certificateFor } from "../../testkit/api/certificates.ts";
import { enrollTestNode, heartbeatOf, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openTestStream, type StreamOptions, type TestStream } from "../../testkit/api/streams.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { temporaryAuthority } from "../src/identity/authority.ts";
import { MOST_OF_ONE_NODE } from "../src/node-api/streams/serve.ts";

let api: TestApi;
let kelp: TestOrg;

beforeAll(async () => {
  api = await startTestApi();
  kelp = await createOrg(api, "kelp");
});

const operator = () => api.operator(kelp.id);

async function activeNode(): Promise<TestNode> {
  const node = await enrollTestNode(api, kelp.id);
  await sendHeartbeatFrom(node);
  return node;
}

function streamOf(node: TestNode, options: Partial<StreamOptions> = {}): Promise<TestStream> {
  return openTestStream(api.nodeUrl, node.tls, { nodeId: node.id, ...options });
}

async function noop(node: TestNode): Promise<string> {
  const task = await operator()(createTask, { params: { node_id: node.id }, body: { type: "node.noop" } });
  return task.id;
}

const change = (node: TestNode, to: "fence" | "revoke", reason: string) =>
  operator()(changeNode, { params: { node_id: node.id }, body: { change: to, reason } });

const capacity = (room: number, holding: unknown[] = [], seen = 0) => ({ capacity: { room, holding, seen } });
const offersIn = (stream: TestStream) =>
  stream.frames.flatMap((frame) =>
    "offer" in frame ? (frame["tasks"] as { task_id: string; generation: number }[]) : [],
  );
const done = ({ task_id, generation }: { task_id: string; generation: number }) => ({
  ...{ task_id, generation, timings: {} },
  outcome: { status: "succeeded", result: { echo: null } },
});
const codeIn = (frame: Record<string, unknown>) => (frame["error"] as { code: string } | undefined)?.code;

describe("a stream of an agent", () => {
  it("TASK-02 brings tasks as they are created, up to the room, and takes results and heartbeats", async () => {
    const node = await activeNode();
    const before = await noop(node);
    const stream = await streamOf(node);
    const beat = await stream.call(sendHeartbeat.name, heartbeatOf());
    expect(beat["answer"]).toMatchObject({ node: { status: "active" } });
    stream.send(capacity(2));
    await expect.poll(() => offersIn(stream).map((one) => one.task_id)).toEqual([before]);
    const [, second] = [before, await noop(node)];
    await expect.poll(() => offersIn(stream).map((one) => one.task_id)).toEqual([before, second]);
    const third = await noop(node);
    const settled = await stream.call("reportResults", { results: offersIn(stream).map(done) });
    expect(settled["answer"]).toMatchObject({ verdicts: [{ verdict: "accepted" }, { verdict: "accepted" }] });
    // There was no room for it before.
    await expect.poll(() => offersIn(stream).map((one) => one.task_id)).toEqual([before, second, third]);
    expect((await operator()(getTask, { params: { task_id: before } })).status).toBe("completed");
  });

  it("TASK-02 offers again what a lost connection did not bring, and nothing that is held", async () => {
    const node = await activeNode();
    const instanceId = uuidv7();
    const lost = await streamOf(node, { instanceId });
    lost.send(capacity(8));
    const taskId = await noop(node);
    await lost.next("offer");
    lost.socket.terminate();
    const next = await streamOf(node, { instanceId });
    next.send(capacity(8));
    await expect.poll(() => offersIn(next).map((one) => one.task_id)).toEqual([taskId]);
    const [offered] = offersIn(next);
    const holding = { task_id: taskId, generation: offered?.generation };
    next.send(capacity(7, [holding], 1));
    const another = await noop(node);
    await expect.poll(() => offersIn(next).map((one) => one.task_id)).toEqual([taskId, another]);
  });

  it("TASK-02 the newer stream of an agent takes over; the older one is closed when its calls are answered", async () => {
    const node = await activeNode();
    const instanceId = uuidv7();
    const older = await streamOf(node, { instanceId });
    older.send(capacity(8));
    const newer = await streamOf(node, { instanceId });
    await expect.poll(older.closed).toMatchObject({ code: streamCloseCodes.superseded });
    newer.send(capacity(8));
    await noop(node);
    await expect.poll(() => offersIn(newer).length).toBe(1);
    expect(offersIn(older)).toEqual([]);
  });

  it("ID-09 ends at once when the node is revoked, and says why; a new one is refused", async () => {
    const node = await activeNode();
    const stream = await streamOf(node);
    await change(node, "revoke", "stolen");
    const ended = await stream.next("error");
    expect(ended).toMatchObject({ status: 401, error: { code: "identity_revoked" } });
    await expect.poll(stream.closed).toMatchObject({ code: streamCloseCodes.refused });
    await expect(streamOf(node)).rejects.toMatchObject({ status: 401, body: { code: "identity_revoked" } });
  });

  it("ID-09 tells at once that the node is quarantined, and offers nothing until it is not", async () => {
    const node = await activeNode();
    const stream = await streamOf(node);
    stream.send(capacity(8));
    await change(node, "fence", "odd");
    expect(await stream.next("standing")).toEqual({ standing: { status: "quarantined", reason: "odd" } });
  });

  it("ID-01 accepts the node's own certificate only: none, a stranger's, another node's path, a forged header", async () => {
    const [node, other] = [await activeNode(), await activeNode()];
    const stranger = await certificateFor(node.id, await temporaryAuthority(new Date()));
    const refused = async (tls: object, options: Partial<StreamOptions> = {}) => {
      const opening = openTestStream(api.nodeUrl, { ca: node.tls.ca, ...tls }, { nodeId: node.id, ...options });
      const error = (await opening.then(
        () => undefined,
        (refusal: unknown) => refusal,
      )) as { body: { code: string } } | undefined;
      return error?.body.code;
    };
    expect(await refused({})).toBe("certificate_missing");
    expect(await refused(stranger)).toBe("certificate_untrusted");
    expect(await refused(node.tls, { nodeId: other.id })).toBe("node_mismatch");
    expect(await refused(node.tls, { headers: { "x-holdfast-client-certificate": "x" } })).toBe(
      "certificate_header_refused",
    );
    expect(await refused(node.tls, { headers: { host: "evil.example" } })).toBe("host_refused");
    expect(await refused(node.tls, { instanceId: "not-a-uuid" })).toBe("invalid_request");
    const authority = await authorityOf(api);
    const expired = await certificateFor(node.id, authority, new Date(Date.now() - 48 * 3_600_000));
    expect(await refused(expired)).toBe("cert_expired");
  });

  it("ID-01 answers only calls of nodes, validates them, and survives what is wrong in one", async () => {
    const node = await activeNode();
    const stream = await streamOf(node);
    expect(codeIn(await stream.call("listNodes", {}))).toBe("route_not_found");
    expect(codeIn(await stream.call("sendHeartbeat", { sent_at: "yesterday" }))).toBe("invalid_request");
    expect(codeIn(await stream.call("sendDiagnostics", { records: ["x".repeat(300_000)] }))).toBe(
      "body_too_large",
    );
    const other = uuidv7();
    const more = await stream.call(
      "reportProgress",
      { generation: 1, phase: "p", timings: {}, more: 1 },
      { task_id: other },
    );
    expect(codeIn(more)).toBe("unknown_field");
    const named = await stream.call(
      "reportProgress",
      { generation: 1, phase: "p", timings: {} },
      { node_id: other, task_id: other },
    );
    expect(named["answer"]).toEqual({ cancel: true });
    expect((await stream.call("checkIdentity")) as object).toMatchObject({ answer: { node_id: node.id } });
    expect(stream.closed()).toBeUndefined();
  });

  const malformed = {
    "not JSON": "{",
    "no object": "7",
    "no frame": JSON.stringify({ hello: 1 }),
    "a prototype": '{"id":1,"call":"checkIdentity","correlation_id":"a","body":{"__proto__":{"x":1}}}',
    "too much room": JSON.stringify(capacity(1_000)),
    "a wrong correlation id": JSON.stringify({ id: 1, call: "checkIdentity", correlation_id: "\n" }),
  };
  it.for(Object.entries(malformed))("ID-01 ends at a frame that is none: %s", async ([, frame]) => {
    const stream = await streamOf(await activeNode());
    stream.send(frame);
    expect(codeIn(await stream.next("error"))).toBe("invalid_request");
    await expect.poll(stream.closed).toMatchObject({ code: streamCloseCodes.refused });
  });

  it("TASK-02 answers a thousand calls that were sent without waiting, each once", async () => {
    const node = await activeNode();
    const stream = await streamOf(node);
    for (let id = 1; id <= 1_000; id += 1) {
      stream.send({ id, call: "checkIdentity", correlation_id: uuidv7() });
    }
    await expect.poll(() => stream.frames.length).toBe(1_000);
    expect(new Set(stream.frames.map((frame) => frame["id"])).size).toBe(1_000);
    expect(stream.frames.every((frame) => "answer" in frame)).toBe(true);
  });

  it("AGENT-06 its end is recorded at once, with how it ended, and the node is offline; a heartbeat ends that", async () => {
    const { superuser } = openRoles(api.database);
    const node = await activeNode();
    const presence = async () => {
      const [row] = await superuser<{ disconnected_at: Date | null; disconnected_why: string | null }[]>`
        SELECT disconnected_at, disconnected_why FROM node_presence WHERE node_id = ${node.id}`;
      return row;
    };
    const instanceId = uuidv7();
    const cut = await streamOf(node, { instanceId });
    await cut.call(sendHeartbeat.name, heartbeatOf());
    cut.socket.terminate();
    await expect.poll(presence).toMatchObject({ disconnected_why: "connection_lost" });
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - interval '12 seconds', disconnected_at = now() - interval '11 seconds'
      WHERE node_id = ${node.id}`;
    const offline = await operator()(getNode, { params: { node_id: node.id } });
    expect(offline.connection).toBe("offline");
    expect(offline.attention).toMatchObject([{ code: "connection_lost" }]);
    const back = await streamOf(node, { instanceId });
    await back.call(sendHeartbeat.name, heartbeatOf());
    expect(await presence()).toEqual({ disconnected_at: null, disconnected_why: null });
    expect((await operator()(getNode, { params: { node_id: node.id } })).connection).toBe("online");
    back.socket.close(1000);
    await expect.poll(presence).toMatchObject({ disconnected_why: "closed_by_agent" });
  });

  it("ID-01 has a limited number of siblings, whatever instances its node invents", async () => {
    const node = await activeNode();
    const streams = [];
    for (let count = 0; count < MOST_OF_ONE_NODE; count += 1) streams.push(await streamOf(node));
    await expect(streamOf(node)).rejects.toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
    streams[0]?.socket.close(1000);
    await expect.poll(() => streamOf(node).then(Boolean, () => false)).toBe(true);
  });
});

describe("an agent that is gone", () => {
  it("AGENT-06 is noticed when the last that was sent to it is an answer", async () => {
    const node = await activeNode();
    const stream = await openTestStream(api.nodeUrl, node.tls, { nodeId: node.id });
    await stream.call("sendHeartbeat", { ...heartbeatOf(), holding: [] });
    const { superuser } = openRoles(api.database);
    // Neither reads nor responds any more, and its connection stays.
    stream.socket.pause();
    const why = async () =>
      (await superuser`SELECT disconnected_why FROM node_presence WHERE node_id = ${node.id}`)[0]?.[
        "disconnected_why"
      ];
    await expect.poll(why).toBe("unresponsive");
  });
});

describe("an api that stops", () => {
  it("TASK-02 asks agents to move, still answers them, and refuses new streams; then it closes", async () => {
    const draining = await startTestApi({ database: api.database, env: { HOLDFAST_DRAIN_SECONDS: "1" } });
    const node = await activeNode();
    const stream = await openTestStream(draining.nodeUrl, node.tls, { nodeId: node.id });
    const stopped = draining.stop();
    expect(await stream.next("move")).toEqual({ move: true });
    expect(await stream.call("checkIdentity")).toMatchObject({ answer: { node_id: node.id } });
    await expect(openTestStream(draining.nodeUrl, node.tls, { nodeId: node.id })).rejects.toThrow();
    await stopped;
    await expect.poll(stream.closed).toMatchObject({ code: streamCloseCodes.stopping });
  });
});
