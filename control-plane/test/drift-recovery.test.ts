// A recovery from the end of its cause to the green checklist, as it is stored.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { getIncident } from "@holdfast/contracts/endpoints/incidents";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { listTasks } from "@holdfast/contracts/endpoints/tasks";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, openClient, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { openReplica, quiet } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { runRecoveryChecks } from "../src/drift/recovery/run-checks.ts";
import { findUnnoticed, noticeStandings } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "recovering");
});

async function activeNode(): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
  return node;
}

/** As a worker does. */
async function classify(): Promise<void> {
  await findUnnoticed(system, policy);
  await noticeStandings(system);
  await classifyWhatIsDue(system, policy);
}
const client = () => api.operator(org.id);
const explained = ({ id }: TestNode) => client()(explainNode, { params: { node_id: id } });
const change = ({ id }: TestNode, what: "fence" | "reactivate") =>
  client()(changeNode, { params: { node_id: id }, body: { change: what } });

/** Quarantined and reactivated; nothing was seen of it since. Returns the id of the incident. */
async function repaired(node: TestNode): Promise<string> {
  await change(node, "fence");
  await classify();
  const { incident } = await explained(node);
  if (!incident) throw new Error("a quarantine opened no incident");
  await change(node, "reactivate");
  await classify();
  return incident.id;
}

describe("a recovery", () => {
  it("DRIFT-06 DRIFT-09 ends with five lines seen since the repair, and the no-op runs by itself", async () => {
    const node = await activeNode();
    const id = await repaired(node);
    const checking = await explained(node);
    expect(checking).toMatchObject({
      ...{ healthy: false, user_state: "recovering", incident: { id }, layers: { management: "recovering" } },
      causes: [{ reason: "recovery_unverified", severity: "P2", next_action: "wait" }],
      history: [{ incident_id: id, reason: "identity_revoked_or_fenced", closed_at: null }],
    });
    expect(checking.checklist.map(({ state }) => state)).toEqual([
      "unknown",
      "unknown",
      "unknown",
      "unknown",
      "done",
    ]);
    expect(checking.repaired_at).not.toBeNull();
    expect(await client()(getNode, { params: { node_id: node.id } })).toMatchObject({
      ...{ user_state: "recovering", attention: [{ code: "recovery_unverified" }] },
    });

    const done = await completeRecoveryCheck(node);
    expect(done).toHaveLength(1);
    await sendHeartbeatFrom(node);
    await classify();
    const after = await explained(node);
    expect(after).toMatchObject({ healthy: true, causes: [], incident: null, user_state: "normal" });

    const { items: tasks } = await client()(listTasks, { query: { node_id: node.id } });
    expect(tasks).toMatchObject([
      {
        type: "node.noop",
        incident_id: id,
        correlation_id: id,
        created_by: "recovery check",
        status: "completed",
      },
    ]);
    const { items: audited } = await client()(listAudit, { query: { correlation_id: id } });
    expect(audited).toMatchObject([
      { action: "task.create", actor_type: "system", incident_id: id, details: { attempt: 1 } },
    ]);
    const { reason, severity, state, verdicts } = await client()(getIncident, { params: { incident_id: id } });
    expect({ reason, severity, state }).toEqual({
      ...{ reason: "identity_revoked_or_fenced", severity: "P0", state: "closed" },
    });
    expect(verdicts.map(({ causes }) => causes[0]?.reason)).toEqual([
      "identity_revoked_or_fenced",
      "recovery_unverified",
    ]);
    const [stored] = await superuser<
      { proof: { check: string; state: string; observed_at: string }[]; at: Date }[]
    >`
      SELECT proof, proof_after AS at FROM incidents WHERE id = ${id}`;
    expect(stored?.proof.map(({ state }) => state)).toEqual(["done", "done", "done", "done", "done"]);
    for (const { observed_at } of stored?.proof ?? [])
      expect(Date.parse(observed_at)).toBeGreaterThan(stored?.at.getTime() ?? 0);
  });

  it("DRIFT-06 is not proved by a task that another instance of the agent completes", async () => {
    const node = await activeNode();
    await repaired(node);
    const other = { ...node, client: openClient(api.nodeUrl, node.tls) };
    await completeRecoveryCheck(other);
    // The one that reports last is the node's present instance.
    await sendHeartbeatFrom(node);
    await classify();
    const { healthy, causes, checklist } = await explained(node);
    expect({ healthy, causes }).toMatchObject({ healthy: false, causes: [{ reason: "recovery_unverified" }] });
    expect(checklist.map(({ state }) => state)).toEqual(["done", "done", "done", "unknown", "done"]);
  });

  it("DRIFT-06 DRIFT-09 is checked by one task at a time, however many api processes run", async () => {
    const node = await activeNode();
    const id = await repaired(node);
    const replica = await openReplica(api.database, system);
    const made = () => superuser<{ count: number }[]>`SELECT count(*)::int FROM tasks WHERE incident_id = ${id}`;
    await Promise.all(Array.from({ length: 4 }, () => runRecoveryChecks(system, replica.engine, quiet)));
    // The api's own may have been the first.
    await expect.poll(made).toEqual([{ count: 1 }]);
    await runRecoveryChecks(system, replica.engine, quiet);
    expect(await made()).toEqual([{ count: 1 }]);
    // One that failed is repeated after a pause.
    await superuser`
      UPDATE tasks SET status = 'expired', failure = '{"code": "task_not_taken"}', finished_at = now(), lease_until = NULL,
        reported = false WHERE incident_id = ${id}`;
    await runRecoveryChecks(system, replica.engine, quiet);
    expect(await made()).toEqual([{ count: 1 }]);
    await superuser`UPDATE tasks SET finished_at = now() - interval '31 seconds' WHERE incident_id = ${id}`;
    await runRecoveryChecks(system, replica.engine, quiet);
    await expect.poll(made).toEqual([{ count: 2 }]);
  });

  it("DRIFT-06 starts over when the cause returns, and keeps its incident", async () => {
    const node = await activeNode();
    const id = await repaired(node);
    await change(node, "fence");
    await classify();
    expect(await explained(node)).toMatchObject({
      ...{ incident: { id }, user_state: "operator_action_required", layers: { management: "impaired" } },
      causes: [{ reason: "identity_revoked_or_fenced", severity: "P0" }],
    });
    const [row] = await superuser`SELECT checking_since FROM incidents WHERE id = ${id}`;
    expect(row).toEqual({ checking_since: null });
  });

  it("DRIFT-06 is not asked of a node that was offline, nor of one that is retired meanwhile", async () => {
    const offline = await activeNode();
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${offline.id}`;
    await classify();
    expect(await explained(offline)).toMatchObject({ causes: [{ reason: "agent_down" }] });
    await sendHeartbeatFrom(offline);
    await classify();
    expect(await explained(offline)).toMatchObject({ healthy: true, incident: null });

    const retired = await activeNode();
    const id = await repaired(retired);
    await client()(changeNode, { params: { node_id: retired.id }, body: { change: "retire" } });
    await classify();
    const incident = await client()(getIncident, { params: { incident_id: id } });
    expect(incident.state).toBe("closed");
  });
});
