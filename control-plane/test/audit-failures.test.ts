// Repeated failures in the audit, with PostgreSQL: replicas agree on what was recorded, and what works again is recorded once.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type Failure, openFailureAudit, type Recovery } from "../src/audit/failures/failures.ts";
import { auditConnected } from "../src/audit/failures/upkeep.ts";
import type { Sql } from "../src/database/connect.ts";
import { openRefusals } from "../src/nodes/identity/refusals.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
const silent = createLog({ process: "test", level: "silent" });
const windowSeconds = 300;
const audit = openFailureAudit(silent, () => windowSeconds);

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "failures");
});

function failureOf(id: string, change: Partial<Failure> = {}): Failure {
  return {
    ...{ orgId: org.id, action: "node.recover", result: "denied", reason: "identity_revoked" },
    by: { actor_type: "node", actor_id: id, actor_name: "a-node", role: "node" },
    target: { type: "node", id, name: "a-node" },
    correlationId: uuidv7(),
    ...change,
  };
}
const recoveryOf = (id: string): Recovery => {
  const { orgId, by, action, target, correlationId } = failureOf(id);
  return { orgId, by, action, target, correlationId };
};
const fail = (failure: Failure) => system.begin((tx) => audit.failed(tx, failure));
const recover = (recovery: Recovery) => system.begin((tx) => audit.recovered(tx, recovery));
/** Oldest first. */
const rowsOf = async (target: string, action = "node.recover") =>
  (await api.operator(org.id)(listAudit, { query: { action, target } })).items.toReversed();
/** As if all of it had happened that much earlier. */
const age = (id: string, seconds: number) => superuser`
  UPDATE audit_failures SET first_seen_at = first_seen_at - ${seconds} * interval '1 second',
    last_seen_at = last_seen_at - ${seconds} * interval '1 second',
    reported_at = reported_at - ${seconds} * interval '1 second' WHERE actor_id = ${id}`;

describe("a failure that is repeated", () => {
  it("AUDIT-02 has one row at first, one summary beyond the window and one when it is over", async () => {
    const id = uuidv7();
    const first = failureOf(id);
    for (const failure of [first, failureOf(id), failureOf(id, { times: 3 })]) await fail(failure);
    expect(await rowsOf(id)).toMatchObject([
      { result: "denied", reason: "identity_revoked", correlation_id: first.correlationId, details: { count: 1 } },
    ]);
    await age(id, windowSeconds);
    await fail(failureOf(id));
    await fail(failureOf(id));
    expect(await recover(recoveryOf(id))).toBe(1);
    expect(await recover(recoveryOf(id))).toBe(0);
    const [, summary, recovered, ...more] = await rowsOf(id);
    expect(more).toEqual([]);
    expect(summary).toMatchObject({ result: "denied", details: { summary: true, count: 6 } });
    expect(recovered).toMatchObject({
      ...{ result: "allowed", reason: null },
      details: { recovered: true, reason: "identity_revoked", count: 7 },
    });
    const { first_seen_at, last_seen_at } = (recovered?.details ?? {}) as Record<string, string>;
    expect(Date.parse(last_seen_at ?? "") - Date.parse(first_seen_at ?? "")).toBeGreaterThanOrEqual(
      windowSeconds * 1000,
    );
    await fail(failureOf(id));
    expect(await rowsOf(id)).toHaveLength(4);
  });

  it("AUDIT-02 is another one with another actor, credential, app, action or reason", async () => {
    const [id, app] = [uuidv7(), uuidv7()];
    const others: Partial<Failure>[] = [
      { credentialId: "one" },
      { credentialId: "two" },
      { appInstanceId: app },
      { reason: "node_mismatch" },
      { orgId: null },
    ];
    for (const change of [{}, ...others]) for (const _ of [1, 2]) await fail(failureOf(id, change));
    const [{ n } = { n: 0 }] = await superuser<{ n: number }[]>`
      SELECT count(*)::int AS n FROM audit_events WHERE target_id = ${id}`;
    expect(n).toBe(6);
    expect(await recover({ ...recoveryOf(id), credentialId: "one" })).toBe(1);
    expect(await recover(recoveryOf(id))).toBe(4);
  });

  it("AUDIT-02 has one row although many replicas see it at once", async () => {
    const id = uuidv7();
    await Promise.all(Array.from({ length: 12 }, () => fail(failureOf(id))));
    expect(await rowsOf(id)).toHaveLength(1);
    await Promise.all(Array.from({ length: 4 }, () => recover(recoveryOf(id))));
    expect(await rowsOf(id)).toMatchObject([{}, { details: { recovered: true, count: 12 } }]);
  });
});

describe("a node whose certificate was refused", () => {
  const connected = () => auditConnected(system, audit, { windowSeconds });

  it("AUDIT-02 counts every refusal, also those that cost no statement", async () => {
    const node = await enrollTestNode(api, org.id);
    let now = 0;
    const refusals = openRefusals({ system, failures: audit, log: silent }, () => now);
    const see = async (at: number) => {
      now = at;
      refusals.saw({ nodeId: node.id, serial: "00", code: "identity_revoked", correlationId: uuidv7() });
      await refusals.settled();
    };
    for (const at of [0, 1_000, 2_000, 9_999]) await see(at);
    await age(node.id, windowSeconds);
    await see(10_000);
    expect((await rowsOf(node.id, "node.connect")).map(({ details }) => details["count"])).toEqual([1, 5]);
  });

  it("AUDIT-02 has recovered when it reports, and was not refused for a whole window", async () => {
    const node = await enrollTestNode(api, org.id);
    const failure = failureOf(node.id, { action: "node.connect", credentialId: "00" });
    await fail(failure);
    expect(await connected()).toBe(0);
    await sendHeartbeatFrom(node);
    expect(await connected()).toBe(0);
    await age(node.id, windowSeconds);
    // Its last heartbeat was before the refusal.
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - ${2 * windowSeconds} * interval '1 second' WHERE node_id = ${node.id}`;
    expect(await connected()).toBe(0);
    await sendHeartbeatFrom(node);
    // Another certificate of the same node is still refused.
    await fail({ ...failure, credentialId: "01" });
    expect(await connected()).toBe(0);
    await age(node.id, windowSeconds);
    expect(await connected()).toBe(2);
    expect(await connected()).toBe(0);
    const rows = await rowsOf(node.id, "node.connect");
    expect(rows.map(({ result }) => result)).toEqual(["denied", "denied", "allowed", "allowed"]);
  });
});
