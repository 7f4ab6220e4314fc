// The probe form of `tasks/wait`, against the real listener: it shows that the way works, and leaves nothing behind.

import { randomUUID } from "node:crypto";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import { PROBE_QUERY } from "@holdfast/contracts/node/limits";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, openClient, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "probed");
});

const client = () => api.operator(org.id);
const probe = (node: TestNode, instance?: string, wait = 0) =>
  openClient(api.nodeUrl, node.tls, instance).ask({ path: node.path(`tasks/wait?${PROBE_QUERY}&wait=${wait}`) });

async function activeNode(): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
  return node;
}

async function everythingKnown({ id }: TestNode) {
  const rows = await superuser<{ id: string; kind: string; value: string }[]>`
    SELECT id, kind, value FROM node_observations WHERE node_id = ${id} ORDER BY id`;
  const { instance_id, boot_id, link, heartbeat_at } = await client()(getNode, { params: { node_id: id } });
  return { rows: [...rows], instance_id, boot_id, link, heartbeat_at };
}

async function lossOf({ id }: TestNode): Promise<Date | null> {
  const [row] = await superuser<{ disconnected_at: Date | null }[]>`
    SELECT disconnected_at FROM node_presence WHERE node_id = ${id}`;
  return row?.disconnected_at ?? null;
}

/** Sends a request, and closes its connection once the server has it. */
async function cut(node: TestNode, instance: string, path: string): Promise<void> {
  const client = openClient(api.nodeUrl, node.tls, instance);
  const asked = client.ask({ path: node.path(path) }).catch(() => "cut");
  while (!client.socket()?.bytesWritten) await new Promise((resolve) => setImmediate(resolve));
  // Whole exchanges on connections that were opened later.
  for (let round = 0; round < 3; round += 1) await probe(node);
  client.close();
  expect(await asked).toBe("cut");
}

describe("a probe of tasks/wait", () => {
  it("PRE-07 is accepted with the node's certificate, and never claims a task", async () => {
    const node = await activeNode();
    const { id } = await client()(createTask, { params: { node_id: node.id }, body: { type: "node.noop" } });
    const { status, body } = await probe(node);
    expect({ status, body }).toMatchObject({ status: 200, body: { probe: true, tasks: [], cancel: [] } });
    expect(await client()(getTask, { params: { task_id: id } })).toMatchObject({
      status: "queued",
      generation: 0,
    });
    const taken = await node.client.ask({ path: node.path("tasks/wait?wait=25") });
    expect(taken.body["tasks"]).toMatchObject([{ task_id: id, generation: 1 }]);
  });

  it("PRE-07 does not end the poll that the agent holds, nor take its task", async () => {
    const node = await activeNode();
    const held = node.client.ask({ path: node.path("tasks/wait?wait=25") });
    for (let round = 0; round < 3; round += 1) expect((await probe(node)).status).toBe(200);
    const { id } = await client()(createTask, { params: { node_id: node.id }, body: { type: "node.noop" } });
    expect((await held).body["tasks"]).toMatchObject([{ task_id: id }]);
  });

  it("PRE-07 counts as no instance, no heartbeat and no connection, also when it is cut", async () => {
    const node = await activeNode();
    const before = await everythingKnown(node);
    for (const instance of [randomUUID(), randomUUID()]) expect((await probe(node, instance)).status).toBe(200);
    // The same instance as the agent's: its end must not be taken for the end of the agent's connection.
    await cut(node, before.instance_id ?? "", `tasks/wait?${PROBE_QUERY}&wait=25`);
    // A poll of another node that is cut after it: what becomes of that is stored later.
    const other = await activeNode();
    const { instance_id } = await everythingKnown(other);
    await expect
      .poll(async () => {
        await cut(other, instance_id ?? "", "tasks/wait?wait=25");
        return (await lossOf(other)) !== null;
      })
      .toBe(true);
    expect(await lossOf(node)).toBeNull();
    expect(await everythingKnown(node)).toEqual(before);
  });

  it("PRE-07 never turns a line of the recovery checklist green", async () => {
    const node = await activeNode();
    const classify = async () => {
      await findUnnoticed(system, policy);
      await noticeStandings(system);
      await classifyWhatIsDue(system, policy);
    };
    const change = (what: "fence" | "reactivate") =>
      client()(changeNode, { params: { node_id: node.id }, body: { change: what } });
    await change("fence");
    await classify();
    await change("reactivate");
    await classify();
    const checklist = async () =>
      (await client()(explainNode, { params: { node_id: node.id } })).checklist.map(({ state }) => state);
    const before = await checklist();
    expect(before.slice(0, 4)).toEqual(["unknown", "unknown", "unknown", "unknown"]);
    expect((await probe(node)).body).toMatchObject({ probe: true });
    await classify();
    expect(await checklist()).toEqual(before);
  });

  it("PRE-07 is refused as any request is, without the certificate of this node", async () => {
    const [node, other] = [await activeNode(), await enrollTestNode(api, org.id, { hostname: "other" })];
    const path = node.path(`tasks/wait?${PROBE_QUERY}&wait=0`);
    const stranger = openClient(api.nodeUrl, { ca: node.tls.ca });
    expect((await stranger.ask({ path })).body).toMatchObject({ code: "certificate_missing" });
    expect((await other.client.ask({ path })).body).toMatchObject({ code: "node_mismatch" });
    expect((await node.client.ask({ path: node.path("tasks/wait?probe=no") })).status).toBe(400);
  });
});
