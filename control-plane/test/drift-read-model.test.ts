// What is stored of a verdict, and what nodes, lists and explanations make of it.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { getNode, listNodes } from "@holdfast/contracts/endpoints/nodes";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, type heartbeatOf, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { observeSwept } from "../src/drift/observers/tasks.ts";
import { observeTasksDone } from "../src/drift/observers/tasks-done.ts";
import { defaultPolicy, policyOf } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "read-model");
});

async function look() {
  const found = await findUnnoticed(system, defaultPolicy);
  return { found, ...(await classifyWhatIsDue(system, defaultPolicy)) };
}
/** A node whose evidence is just being written is left for the next turn. */
async function settle() {
  await expect.poll(look).toMatchObject({ found: [], classified: 0 });
}
const shown = ({ id }: TestNode) => api.operator(org.id)(getNode, { params: { node_id: id } });
const listed = async ({ name }: TestNode) => (await api.operator(org.id)(listNodes, { query: { name } })).items[0];
const explained = ({ id }: TestNode) => api.operator(org.id)(explainNode, { params: { node_id: id } });
const beating = async (node: TestNode, changes: Parameters<typeof heartbeatOf>[0] = {}) => {
  expect((await sendHeartbeatFrom(node, changes)).status).toBe(200);
};

describe("a node in the read model", () => {
  it("DASH-01 DRIFT-05 is the same on its page and in a list, once it is classified", async () => {
    const node = await enrollTestNode(api, org.id);
    await beating(node, { findings: [{ reason: "disk_full", detail: "0 B", correlation_id: "its-record" }] });
    await expect.poll(async () => (await shown(node)).attention).toHaveLength(1);
    await settle();
    const { attention, layers, user_state, agent_status, cause_pending } = await shown(node);
    expect(await listed(node)).toMatchObject({ layers, user_state, agent_status, cause_pending });
    const [item] = (await listed(node))?.attention ?? [];
    expect(item).toEqual(attention[0]);
    expect(item).toMatchObject({ code: "disk_full", correlation_id: "its-record", severity: "P1" });
    expect(layers).toEqual({ management: "impaired", workload: "unknown", access: "unknown" });
  });

  it("AUDIT-01 an agent's record that follows its finding gives the finding its id, and a later one does not", async () => {
    const node = await enrollTestNode(api, org.id);
    const findings = (correlation_id?: string) => ({
      findings: [{ reason: "link_slow" as const, detail: "2 s", ...(correlation_id ? { correlation_id } : {}) }],
    });
    await beating(node, findings());
    const ids = async () => (await explained(node)).evidence.filter(({ key }) => key === "link_slow");
    await expect.poll(ids).toMatchObject([{ value: "present", correlation_id: null }]);
    expect((await shown(node)).attention).toMatchObject([{ code: "link_slow", correlation_id: null }]);
    await beating(node, findings("the-record"));
    await expect.poll(ids).toMatchObject([{ correlation_id: "the-record" }]);
    const again = {
      nodeId: node.id,
      kind: "finding",
      key: "link_slow",
      value: "present",
      observer: "agent",
    } as const;
    await recordObservations(system, [{ ...again, observedAt: new Date(), correlationId: "another" }]);
    expect(await ids()).toMatchObject([{ correlation_id: "the-record" }]);
    expect((await shown(node)).attention).toMatchObject([{ correlation_id: "the-record" }]);
  });

  it("DRIFT-05 what changed of a layer alone is announced, and what did not is not", async () => {
    const node = await enrollTestNode(api, org.id);
    await beating(node);
    await settle();
    const saw = (value: "running" | "stopped") =>
      recordObservations(system, [
        { nodeId: node.id, kind: "app_status", value, observer: "app_runtime", observedAt: new Date() },
      ]);
    await saw("running");
    expect((await look()).changed).toEqual([node.id]);
    expect(await listed(node)).toMatchObject({ attention: [], layers: { workload: "working" } });
    await saw("running");
    expect(await look()).toMatchObject({ classified: 1, changed: [] });
    await saw("stopped");
    expect((await look()).changed).toEqual([node.id]);
    expect(await listed(node)).toMatchObject({ layers: { management: "working", workload: "impaired" } });
  });

  it("DRIFT-05 is shown as at one moment, also when its connection ends while it is read", async () => {
    const node = await enrollTestNode(api, org.id);
    await beating(node);
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    const asked = await superuser.begin(async (tx) => {
      // The page reads the health of the host after its connection, and before the cause.
      await tx`LOCK TABLE node_health IN ACCESS EXCLUSIVE MODE`;
      const answer = shown(node);
      const waiting = () => system`SELECT FROM pg_locks WHERE NOT granted AND relation = 'node_health'::regclass`;
      await expect.poll(waiting).toHaveLength(1);
      await system`
        UPDATE node_presence SET disconnected_at = now(), disconnected_why = 'unresponsive' WHERE node_id = ${node.id}`;
      return { answer };
    });
    const { connection, attention } = await asked.answer;
    expect([connection, attention.map(({ code }) => code)]).toEqual(["stale", ["heartbeat_stale"]]);
    const { connection: later, attention: causes } = await shown(node);
    expect([later, causes.map(({ code }) => code)]).toEqual(["offline", ["connection_lost"]]);
  });

  it("ID-14 a clock that goes wrong, or right again, is noticed without a finding, and once", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    await settle();
    await beating(node, { sent_at: new Date(Date.now() + 600_000).toISOString() });
    expect((await look()).found).toEqual([node.id]);
    expect(await listed(node)).toMatchObject({ attention: [{ code: "clock_skew" }] });
    expect((await look()).found).toEqual([]);
    await beating(node);
    expect((await look()).found).toEqual([node.id]);
    expect(await listed(node)).toMatchObject({ attention: [] });
  });

  it("ID-14 a heartbeat from the future is classified once", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    await settle();
    await superuser`UPDATE node_presence SET heartbeat_at = now() + interval '14 hours' WHERE node_id = ${node.id}`;
    expect((await look()).found).toEqual([node.id]);
    expect(await listed(node)).toMatchObject({ attention: [{ code: "heartbeat_in_future" }] });
    expect((await look()).found).toEqual([]);
    await superuser`UPDATE nodes SET status = 'retired', revoked_at = now() WHERE id = ${node.id}`;
  });
});

describe("recovery", () => {
  const publish = () => undefined;
  const states = async (node: TestNode) =>
    Object.fromEntries((await explained(node)).checklist.map(({ check, state }) => [check, state]));
  const end = (id: string) => superuser`
    UPDATE tasks SET status = 'completed', result = '{}', reported = true, lease_until = NULL, finished_at = now()
    WHERE id = ${id}`;
  const taskFor = ({ id }: TestNode) =>
    api.operator(org.id)(createTask, { params: { node_id: id }, body: { type: "node.noop" } });

  it("DRIFT-06 is complete when a task is completed after the outage, which also ends what expired meanwhile", async () => {
    const node = await enrollTestNode(api, org.id);
    await beating(node);
    const before = await taskFor(node);
    await end(before.id);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    await superuser`UPDATE tasks SET finished_at = now() - interval '11 minutes' WHERE id = ${before.id}`;
    const late = await taskFor(node);
    await superuser`UPDATE tasks SET expires_at = now() - interval '1 second' WHERE id = ${late.id}`;
    expect(await states(node)).toMatchObject({ no_expired_work: "failed" });
    await sweepTasks(system, { publish }, observeSwept({ system, signals: { publish } }));
    await settle();
    expect(await states(node)).toMatchObject({
      ...{ heartbeat_current: "failed", task_wait_succeeds: "unknown" },
      ...{ task_completed: "unknown", no_expired_work: "failed" },
    });
    await beating(node);
    expect(await observeTasksDone(system)).toEqual([]);
    expect((await shown(node)).attention).toMatchObject([{ code: "task_backlog_stale" }]);
    const after = await taskFor(node);
    await end(after.id);
    expect(await observeTasksDone(system)).toEqual([node.id]);
    expect(await observeTasksDone(system)).toEqual([]);
    await settle();
    expect((await shown(node)).attention).toEqual([]);
    const { checklist, evidence, healthy } = await explained(node);
    expect(healthy).toBe(true);
    expect(checklist.map(({ state }) => state)).toEqual(["done", "done", "done", "done", "done"]);
    expect(checklist[3]?.evidence).toBe(`task:${after.id}`);
    expect(checklist.every((one) => evidence.some(({ id }) => id === one.evidence))).toBe(true);
  });
});

describe("the policy", () => {
  it("DRIFT-04 is what operators set, and its defaults otherwise", () => {
    const settings = { nodeHeartbeatStaleSeconds: 120, nodeDiskPressurePercent: 90 };
    expect(policyOf(settings)).toEqual(defaultPolicy);
    expect(policyOf({ nodeHeartbeatStaleSeconds: 30, nodeDiskPressurePercent: 80 })).toEqual({
      ...{ ...defaultPolicy, heartbeatStaleAfterMs: 30_000, diskPressurePercent: 80 },
    });
  });
});
