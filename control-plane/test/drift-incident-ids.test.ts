// The id of an open incident in everything that is done in its course.

import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getIncident, listIncidents } from "@holdfast/contracts/endpoints/incidents";
import { changeNode, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask, listTasks } from "@holdfast/contracts/endpoints/tasks";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { announceProcess } from "../src/platform/presence.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "affected");
});

async function activeNode(): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id);
  await sendHeartbeatFrom(node);
  return node;
}

/** Opens an incident of the node, or ends it. */
async function ssh({ id }: TestNode, value: "failed" | "succeeded"): Promise<string | null> {
  await api.operator(org.id)(addNodeEvidence, { params: { node_id: id }, body: { ssh: value } });
  await classifyWhatIsDue(system, policy);
  const { items } = await api.operator(org.id)(listIncidents, { query: { node_id: id, state: "open" } });
  return items[0]?.id ?? null;
}

describe("an open incident", () => {
  it("DRIFT-09 is named by tasks that are created in its course, alone or with others, and no others", async () => {
    const node = await activeNode();
    const client = api.operator(org.id);
    const create = () => client(createTask, { params: { node_id: node.id }, body: { type: "node.noop" } });
    const before = await create();
    const incident = await ssh(node, "failed");
    const during = await create();
    await ssh(node, "succeeded");
    const after = await create();
    expect([before, during, after].map(({ incident_id }) => incident_id)).toEqual([null, incident, null]);
    expect(await client(getTask, { params: { task_id: during.id } })).toMatchObject({ incident_id: incident });
    const { items } = await client(listTasks, { query: { incident_id: incident ?? "" } });
    expect(items.map(({ id }) => id)).toEqual([during.id]);
    const { items: audited } = await client(listAudit, { query: { incident_id: incident ?? "" } });
    expect(audited.map(({ action }) => action)).toContain("task.create");
  });

  it("DRIFT-09 AUDIT-01 is named by the audit of its node and of what is on it", async () => {
    const node = await activeNode();
    const client = api.operator(org.id);
    const incident = await ssh(node, "failed");
    await client(updateNode, { params: { node_id: node.id }, body: { name: `renamed-${node.name}` } });
    await client(createAllocation, { body: { node_id: node.id, username: "somebody" } });
    await client(createEnrollmentToken, { body: { node_id: node.id } });
    const other = await activeNode();
    await client(changeNode, { params: { node_id: other.id }, body: { change: "drain" } });
    const { items } = await client(listAudit, { query: { incident_id: incident ?? "" } });
    expect(items.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["node.update", "allocation.create", "task.create", "node.token_create"]),
    );
    expect(items.every(({ incident_id }) => incident_id === incident)).toBe(true);
    expect(items.map(({ target_id }) => target_id)).not.toContain(other.id);
  });

  it("DRIFT-10 SEC-01 is not told to whoever names the node of another organization", async () => {
    const node = await activeNode();
    const incident = await ssh(node, "failed");
    expect(incident).not.toBeNull();
    const stranger = await createOrg(api, "stranger");
    const token = await tokenFor(api, stranger, "owner");
    const attempt = api.as(token, stranger.id)(updateNode, {
      params: { node_id: node.id },
      body: { name: "mine" },
    });
    await expect(attempt).rejects.toMatchObject({ envelope: { code: "not_found" } });
    const { items } = await api.as(token, stranger.id)(listAudit, { query: { action: "node.update" } });
    expect(items).toMatchObject([{ target_id: node.id, result: "failed", incident_id: null }]);
  });
});

describe("episodes of a host", () => {
  const record = (correlation_id: string, at: Date) => ({
    ...{ seq: Math.floor(at.getTime() / 1000), at: at.toISOString(), reason: "control_plane_unreachable" },
    ...{ detail: "connection refused", instance_id: uuidv7(), correlation_id },
  });
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
  const waitFor = (node: TestNode, correlationId: string) =>
    expect.poll(
      () =>
        superuser`SELECT FROM node_observations WHERE node_id = ${node.id} AND correlation_id = ${correlationId}`,
    );

  it("DRIFT-09 lead to the incident in whose course they were recorded, also when they arrive after it", async () => {
    const node = await activeNode();
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    await superuser`UPDATE node_verdicts SET review_at = now() WHERE node_id = ${node.id}`;
    await classifyWhatIsDue(system, policy);
    await sendHeartbeatFrom(node);
    await superuser`UPDATE node_verdicts SET review_at = now() WHERE node_id = ${node.id}`;
    await classifyWhatIsDue(system, policy);
    const client = api.operator(org.id);
    const [incident] = (await client(listIncidents, { query: { node_id: node.id } })).items;
    expect(incident?.state).toBe("closed");
    const records = [record("long-before", minutesAgo(60)), record("in-its-course", minutesAgo(5))];
    for (const one of records) {
      const body = { records: [one] };
      const { status } = await node.client.ask({ method: "POST", path: node.path("diagnostics"), body });
      expect(status).toBe(200);
      await waitFor(node, one.correlation_id).toHaveLength(1);
    }
    const found = async (episode: string) =>
      (await client(listIncidents, { query: { episode } })).items.map(({ id }) => id);
    expect(await found("in-its-course")).toEqual([incident?.id]);
    expect(await found("long-before")).toEqual([]);
    const detail = await client(getIncident, { params: { incident_id: incident?.id ?? "" } });
    expect(detail.episodes).toEqual(["in-its-course"]);
  });

  it("DRIFT-09 that were recorded before the incident was opened are its episodes, up to a limit", async () => {
    const node = await activeNode();
    for (let count = 0; count < 25; count += 1) {
      await recordObservations(system, [
        {
          ...{ nodeId: node.id, kind: "finding", key: `made_up_${count}`, value: "present", observer: "agent" },
          ...{ observedAt: new Date(), correlationId: `episode-${count}` },
        },
      ]);
    }
    await classifyWhatIsDue(system, policy);
    const [row] = await superuser<{ episodes: string[] }[]>`
      SELECT episodes FROM incidents WHERE node_id = ${node.id}`;
    expect(row?.episodes).toHaveLength(20);
  });
});

describe("an outage of the control plane", () => {
  const outages = () => superuser<{ kind: string; over: boolean; seconds: number }[]>`
    SELECT kind, ended_at IS NOT NULL AS over, extract(epoch FROM coalesce(ended_at, now()) - began_at)::int AS seconds
    FROM control_plane_outages WHERE kind = 'worker' ORDER BY began_at`;
  const silent = (seconds: number) => superuser`
    UPDATE processes SET last_seen_at = now() - ${seconds}::int * interval '1 second' WHERE kind = 'worker'`;

  it("DRIFT-04 is kept: after a crash, after a stop, and when the database was out of reach", async () => {
    const first = await announceProcess(system, "worker");
    expect(await outages(), "there was none before").toEqual([]);
    await silent(15);
    await first.look({});
    expect(await outages(), "a heartbeat was late").toEqual([]);
    await silent(100);
    await first.look({});
    expect(await outages(), "it was hung").toMatchObject([{ over: true, seconds: 100 }]);
    await silent(60);
    const second = await announceProcess(system, "worker");
    expect(await outages(), "it crashed").toMatchObject([{ seconds: 100 }, { over: true, seconds: 60 }]);
    await first.look({});
    await first.leave({});
    expect(await outages(), "another one runs").toHaveLength(2);
    await second.leave({});
    expect(await outages()).toMatchObject([{}, {}, { over: false }]);
    await announceProcess(system, "worker");
    expect(await outages()).toMatchObject([{}, {}, { over: true }]);
  });
});
