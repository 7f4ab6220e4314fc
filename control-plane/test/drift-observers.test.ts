// What agents send becomes evidence, and evidence a verdict.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { listNodeDiagnostics } from "@holdfast/contracts/endpoints/nodes";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, heartbeatOf, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { observeSwept } from "../src/drift/observers/tasks.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";
import { moveNode } from "../src/nodes/directory/state.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "observers");
});

const heartbeat = (node: TestNode, findings: { reason: string; detail: string }[] = []) =>
  node.client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf({ findings }) });

async function reasonsOf({ id }: TestNode): Promise<string[]> {
  await findUnnoticed(system, policy);
  await classifyWhatIsDue(system, policy);
  const [row] = await superuser<{ causes: { reason: string }[] }[]>`
    SELECT causes FROM node_verdicts WHERE node_id = ${id}`;
  return row?.causes.map(({ reason }) => reason) ?? [];
}

describe("what an agent reports", () => {
  it("DRIFT-01 a finding stands until a heartbeat comes without it", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    expect(await reasonsOf(node)).toEqual([]);
    await heartbeat(node, [{ reason: "disk_full", detail: "0 bytes free on /" }]);
    await expect.poll(() => reasonsOf(node)).toEqual(["disk_full"]);
    await heartbeat(node, [{ reason: "moon_phase", detail: "full" }]);
    await expect.poll(() => reasonsOf(node)).toEqual(["moon_phase"]);
    await heartbeat(node);
    await expect.poll(() => reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-01 a finding that was stored by another process is over with the first heartbeat without it", async () => {
    const node = await enrollTestNode(api, org.id);
    const observedAt = new Date(Date.now() - 60_000);
    await recordObservations(system, [
      { nodeId: node.id, kind: "finding", key: "link_slow", value: "present", observer: "agent", observedAt },
    ]);
    await heartbeat(node);
    const stored = async () =>
      (
        await superuser<{ value: string }[]>`
          SELECT value FROM node_observations WHERE node_id = ${node.id} AND kind = 'finding' ORDER BY observed_at`
      ).map(({ value }) => value);
    await expect.poll(stored).toEqual(["present", "absent"]);
    expect(await reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-08 records of an outage that arrive after it are history", async () => {
    const node = await enrollTestNode(api, org.id);
    const record: DiagnosticRecord = {
      ...{ seq: 1, at: new Date(Date.now() - 60_000).toISOString(), reason: "api_unreachable", detail: "refused" },
      ...{ instance_id: uuidv7(), correlation_id: "outage-1" },
    };
    await firstHeartbeat(superuser, node);
    await node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records: [record] } });
    const stored = () => superuser`
      SELECT value, correlation_id FROM node_observations WHERE node_id = ${node.id} AND kind = 'diagnostic'`;
    await expect.poll(stored).toEqual([{ value: "api_unreachable", correlation_id: "outage-1" }]);
    expect(await reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-08 DRIFT-09 records of a clock that was ahead meanwhile are history, too", async () => {
    const node = await enrollTestNode(api, org.id);
    const record = (seq: number, seconds: number, reason: string): DiagnosticRecord => ({
      ...{ seq, at: new Date(Date.now() + seconds * 1_000).toISOString(), reason, detail: "" },
      ...{ instance_id: uuidv7(), correlation_id: null },
    });
    const records = [record(1, 600, "identity_key_missing"), record(2, -1, "process_alive")];
    await firstHeartbeat(superuser, node);
    await node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records } });
    const stored = () => superuser`
      SELECT value FROM node_observations WHERE node_id = ${node.id} AND kind = 'diagnostic' AND replaced_at IS NULL`;
    await expect.poll(stored).toEqual([{ value: "process_alive" }]);
    expect(await reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-08 a reason that only a newer agent knows is stored with the others, and said to be unknown", async () => {
    const node = await enrollTestNode(api, org.id);
    const made = (seq: number, reason: string) => ({
      ...{ seq, at: new Date(Date.now() - 10_000 + seq * 1_000).toISOString(), reason, detail: "full" },
      instance_id: uuidv7(),
      correlation_id: uuidv7(),
    });
    const deliver = (...records: DiagnosticRecord[]) =>
      node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records } });
    expect(await deliver(made(1, "api_unreachable"), made(2, "moon_phase"))).toMatchObject({ body: { seq: 2 } });
    const params = { node_id: node.id };
    const { items } = await api.operator(org.id)(listNodeDiagnostics, { params });
    expect(items.map(({ reason }) => reason)).toEqual(["moon_phase", "api_unreachable"]);
    await expect.poll(() => reasonsOf(node)).toEqual(["moon_phase"]);
    const { causes } = await api.operator(org.id)(explainNode, { params });
    expect(causes).toMatchObject([
      { title: "Moon phase", message: "The agent reports a reason that this server does not know. full" },
    ]);
    expect(await deliver(made(3, "Moon phase"))).toMatchObject({ status: 400 });
  });

  it("AUDIT-01 a node that makes up reasons fills the audit no more than one that has a single problem", async () => {
    const node = await enrollTestNode(api, org.id);
    for (let delivery = 0; delivery < 4; delivery += 1) {
      const records = Array.from({ length: 8 }, (_, index) => ({
        ...{ seq: delivery * 8 + index, at: new Date().toISOString(), reason: `phase_${delivery}_${index}` },
        ...{ detail: "", instance_id: uuidv7(), correlation_id: uuidv7() },
      }));
      await node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records } });
    }
    const [row] = await superuser<{ count: number }[]>`
      SELECT count(*)::int FROM audit_events WHERE target_id = ${node.id} AND action = 'node.report'`;
    expect(row?.count).toBe(20);
  });

  it("ID-14 a node that is refused is known to be alive, and why it is refused", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node);
    const moved = await system.begin((tx) => moveNode(tx, node.id, "revoke"));
    if (!moved || "refused" in moved) throw new Error("the node was not revoked");
    const knocks = () => superuser`
      SELECT value, detail->>'endpoint' AS endpoint FROM node_observations
      WHERE node_id = ${node.id} AND kind = 'refusal'`;
    // The first request may be ended by the revocation itself, before its certificate is refused.
    const knock = async () => {
      expect((await heartbeat(node)).status).toBeOneOf([200, 401]);
      return knocks();
    };
    await expect.poll(knock).toEqual([{ value: "identity_revoked", endpoint: "node_facing" }]);
    await expect.poll(() => reasonsOf(node)).toEqual(["identity_revoked_or_fenced"]);
  });
});

describe("task truth", () => {
  const publish = () => undefined;
  const sweep = () => sweepTasks(system, { publish }, observeSwept({ system, signals: { publish } }));
  const taskFor = async ({ id }: TestNode) =>
    api.operator(org.id)(createTask, { params: { node_id: id }, body: { type: "node.noop" } });

  it("DRIFT-01 tasks that expired in the queue differ from those that a node lost, and routine ones are neither", async () => {
    const nodes = [
      await enrollTestNode(api, org.id),
      await enrollTestNode(api, org.id),
      await enrollTestNode(api, org.id),
    ];
    const [late, lost, routine] = nodes as [TestNode, TestNode, TestNode];
    for (const node of nodes) await firstHeartbeat(superuser, node);
    const [first, second, third] = [await taskFor(late), await taskFor(lost), await taskFor(routine)];
    await superuser`UPDATE tasks SET expires_at = now() - interval '1 second' WHERE id IN (${first.id}, ${third.id})`;
    await superuser`UPDATE tasks SET routine = true WHERE id = ${third.id}`;
    await superuser`
      UPDATE tasks SET status = 'dispatched', generation = 1, dispatched_at = now() - interval '10 minutes',
        lease_until = now() - interval '1 second' WHERE id = ${second.id}`;
    await sweep();
    expect(await reasonsOf(late)).toEqual(["task_backlog_stale"]);
    expect(await reasonsOf(lost)).toEqual(["node_task_result_post_failed"]);
    expect(await reasonsOf(routine)).toEqual([]);
  });
});
