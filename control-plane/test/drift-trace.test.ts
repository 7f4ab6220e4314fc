// The story of a recovery, found by any id that belongs to it.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { listTasks } from "@holdfast/contracts/endpoints/tasks";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { getTrace, type Trace } from "@holdfast/contracts/endpoints/trace";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let node: TestNode;
let incidentId: string;
let taskId: string;

const client = () => api.operator(org.id);
const trace = (id: string, by = client()) => by(getTrace, { params: { trace_id: id } });
const story = ({ items }: Trace) => items.map(({ kind, code, title }) => `${kind} ${code ?? title}`);

async function classify(): Promise<void> {
  await findUnnoticed(system, policy);
  await noticeStandings(system);
  await classifyWhatIsDue(system, policy);
}
const change = (what: "fence" | "reactivate") =>
  client()(changeNode, { params: { node_id: node.id }, body: { change: what } });

beforeAll(async () => {
  api = await startTestApi();
  // As after a clock that was ahead: ids keep their order, and are ahead of the time until it has caught up.
  uuidv7(Date.now() + 5_000);
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "traced");
  node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
  const { id } = await client()(createAllocation, { body: { node_id: node.id, username: "somebody" } });
  // Its own task would be offered before the check.
  await superuser`UPDATE allocations SET status = 'active' WHERE id = ${id}`;
  await superuser`DELETE FROM tasks WHERE node_id = ${node.id}`;
  await classify();
  await change("fence");
  await classify();
  await recordObservations(system, [
    {
      ...{ nodeId: node.id, kind: "refusal", value: "node_quarantined", observer: "control_plane" },
      ...{ observedAt: new Date(), correlationId: "knocked-1" },
    },
  ]);
  await change("reactivate");
  await classify();
  [taskId = ""] = await completeRecoveryCheck(node);
  await sendHeartbeatFrom(node);
  await classify();
  const [row] = await superuser<{ id: string }[]>`
    SELECT id FROM incidents WHERE node_id = ${node.id} AND closed_at IS NOT NULL`;
  incidentId = row?.id ?? "";
});

describe("a trace", () => {
  it("DASH-08 DRIFT-09 tells a recovery in the order of time: refusal, classification, action, proof", async () => {
    const found = await trace(incidentId);
    expect(found).toMatchObject({
      ...{ found_as: expect.arrayContaining(["incident"]), truncated: false, withheld: [] },
      incidents: [{ id: incidentId, node_name: node.name, reason: "identity_revoked_or_fenced", state: "closed" }],
    });
    const times = found.items.map(({ at }) => at);
    expect(times).toEqual(times.toSorted());
    const steps = story(found);
    const inTurn = [
      `action node.change ${node.name}`,
      "classification identity_revoked_or_fenced",
      "refusal node_quarantined",
      "classification recovery_unverified",
      "action task.create node.noop",
      "proof task_completed",
    ];
    const positions = inTurn.map((step) => steps.indexOf(step));
    expect(positions, steps.join("\n")).not.toContain(-1);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(steps.filter((step) => step.startsWith("proof"))).toHaveLength(5);
    expect(steps).toContain("result Task node.noop completed");
    expect(steps).toContain("notification operator_action_required");
    expect(found.items.find(({ kind }) => kind === "refusal")).toMatchObject({ correlation_id: "knocked-1" });
    expect(found.items.filter(({ title }) => title.startsWith("Healthy again"))).toHaveLength(1);
  });

  it("DASH-08 is found by the id of a task, of an audit event, of a request and of a refusal", async () => {
    const whole = story(await trace(incidentId));
    const { items } = await client()(listTasks, { query: { incident_id: incidentId } });
    expect(items.map(({ id }) => id)).toContain(taskId);
    const [event] = (await client()(listAudit, { query: { incident_id: incidentId } })).items;
    for (const [id, as] of [
      [taskId, "task"],
      [event?.id ?? "", "audit_event"],
      [event?.correlation_id ?? "", "correlation"],
      ["knocked-1", "correlation"],
    ] as const) {
      const found = await trace(id);
      expect(found.found_as).toContain(as);
      expect(found.incidents.map(({ id: found }) => found)).toEqual([incidentId]);
      expect(story(found)).toEqual(expect.arrayContaining(whole.filter((step) => step.startsWith("proof"))));
    }
  });

  it("DASH-08 is bounded, and says so", async () => {
    await superuser`
      INSERT INTO audit_events (id, org_id, actor_type, actor_name, role, action, target_type, result, correlation_id)
      SELECT gen_random_uuid(), ${org.id}, 'system', 'test', 'system', 'node.probe', 'node', 'allowed', 'very-many'
      FROM generate_series(1, 201)`;
    const { items, truncated } = await trace("very-many");
    expect({ truncated, count: items.length }).toEqual({ truncated: true, count: 200 });
  });

  it("SEC-01 DRIFT-10 is unknown to another organization, and closed to members", async () => {
    const unknown = { envelope: { code: "not_found" } };
    const other = await createOrg(api, "elsewhere");
    for (const id of [incidentId, taskId, "knocked-1", "never-heard-of"]) {
      await expect(trace(id, api.operator(other.id))).rejects.toMatchObject(unknown);
    }
    const member = await tokenFor(api, org, "member");
    await expect(trace(incidentId, api.as(member, org.id))).rejects.toMatchObject({
      envelope: { code: "forbidden" },
    });
  });

  it("SEC-01 leaves out what a token's scopes do not include, and says what", async () => {
    const owner = await addMember(api, org, "owner@traced.example", "owner");
    const body = { name: "narrow", role: "owner", scopes: ["nodes:diagnose"] } as const;
    const { token } = await owner.client(org.id)(createToken, { body: { ...body, scopes: [...body.scopes] } });
    const found = await trace(incidentId, api.as(token, org.id));
    expect(found.withheld).toEqual(["audit:read", "tasks:read", "executions:read", "leases:read"]);
    const types = found.items.map(({ ref }) => ref?.type);
    expect(types).not.toContain("audit_event");
    expect(types).not.toContain("task");
    expect(story(found)).toContain("classification identity_revoked_or_fenced");
    for (const id of [taskId, "very-many"]) {
      await expect(trace(id, api.as(token, org.id))).rejects.toMatchObject({ envelope: { code: "not_found" } });
    }
  });
});
