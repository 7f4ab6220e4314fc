// What goes wrong with a node leads to the audit by the correlation id that the node's page shows, once for each
// incident and not for each request.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { auditOffline } from "../src/nodes/presence/audit-offline.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
const silent = createLog({ process: "test", level: "silent" });

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "incidents");
});

const shown = async ({ id }: TestNode) =>
  (await api.operator(org.id)(getNode, { params: { node_id: id } })).attention;
const audited = async (correlation_id: string) =>
  (await api.operator(org.id)(listAudit, { query: { correlation_id } })).items;

describe("a node that went offline", () => {
  const audit = () => auditOffline(system, silent, { staleAfterSeconds: 120 });
  const apiRunsFor = (seconds: number) => superuser`
    UPDATE processes SET started_at = now() - ${seconds}::int * interval '1 second' WHERE kind = 'api'`;

  it("AUDIT-01 CHAOS-02 is in the audit once, under the id of its last heartbeat, which its page shows", async () => {
    const node = await enrollTestNode(api, org.id);
    const { headers } = await sendHeartbeatFrom(node);
    const id = String(headers[CORRELATION_HEADER]);
    await apiRunsFor(600);
    expect(await audit()).toBe(0);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${node.id}`;
    expect(await audit()).toBe(1);
    expect(await audit()).toBe(0);
    expect(await shown(node)).toMatchObject([{ code: "heartbeat_stale", correlation_id: id }]);
    expect(await audited(id)).toMatchObject([
      { action: "node.offline", result: "failed", reason: "heartbeat_stale", target_id: node.id },
    ]);
  });

  it("AUDIT-01 CHAOS-02 is not told from an api that was not there to receive heartbeats", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '1 hour' WHERE node_id = ${node.id}`;
    await apiRunsFor(119);
    expect(await audit()).toBe(0);
    await apiRunsFor(121);
    expect(await audit()).toBe(1);
  });
});

describe("what an agent reports", () => {
  const record = (seq: number, reason: DiagnosticRecord["reason"]): DiagnosticRecord => ({
    ...{ seq, reason, detail: "ECONNREFUSED", at: new Date().toISOString() },
    instance_id: "018f0000-0000-4000-8000-000000000000",
    correlation_id: uuidv7(),
  });
  const deliver = ({ client, path }: TestNode, records: DiagnosticRecord[]) =>
    client.ask({ method: "POST", path: path("diagnostics"), body: { records } });
  const eventsOf = async (records: DiagnosticRecord[]) =>
    (await Promise.all(records.map(({ correlation_id }) => audited(correlation_id ?? "")))).flat();

  it("AUDIT-01 CHAOS-02 is in the audit by the id of its record, also when it is delivered again", async () => {
    const node = await enrollTestNode(api, org.id);
    const records = [record(1, "api_unreachable"), record(2, "process_alive"), record(3, "terminal_failed")];
    for (const _ of [1, 2]) expect((await deliver(node, records)).body).toEqual({ seq: 3 });
    expect(await eventsOf(records)).toMatchObject([
      {
        ...{ action: "node.report", result: "failed", reason: "api_unreachable", actor_type: "node" },
        correlation_id: records[0]?.correlation_id,
        target_id: node.id,
        details: { hop: "node_runtime_api_reachability", hop_detail: "tcp", owner: "network" },
      },
    ]);
  });

  it("AUDIT-01 fills neither the audit of a delivery nor that of an hour", async () => {
    const node = await enrollTestNode(api, org.id);
    const records = Array.from({ length: 60 }, (_, index) => record(index + 1, "api_unreachable"));
    await deliver(node, records.slice(0, 30));
    expect(await eventsOf(records)).toHaveLength(8);
    await deliver(node, records.slice(30, 45));
    await deliver(node, records.slice(45));
    expect(await eventsOf(records)).toHaveLength(20);
  });
});

describe("a certificate that was replaced", () => {
  it("ID-02 AUDIT-01 CHAOS-02 is on the node's page and once in the audit, under the id of the refused request", async () => {
    const old = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(old);
    const renewed = await enrollTestNode(api, org.id, { nodeId: old.id });
    const refused = await sendHeartbeatFrom(old);
    expect(refused).toMatchObject({ status: 401, body: { code: "certificate_replaced" } });
    expect((await sendHeartbeatFrom(old)).status).toBe(401);
    const id = String(refused.headers[CORRELATION_HEADER]);
    const expected = {
      code: "auth_failed",
      hop: "node_recovery_status",
      hop_detail: "identity",
      correlation_id: id,
    };
    await expect.poll(() => shown(old)).toMatchObject([expected]);
    expect(await audited(id)).toMatchObject([
      { action: "node.connect", result: "denied", reason: "certificate_replaced", target_id: old.id },
    ]);
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.connect", target: old.id } });
    expect(items).toHaveLength(1);
    await sendHeartbeatFrom(renewed);
    expect(await shown(old)).toEqual([]);
  });
});
