// Evidence, verdicts and incidents as they are stored.

import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { completeRecoveryCheck } from "../../testkit/api/recovery.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { readEvidence } from "../src/drift/evidence/read.ts";
import { type NewObservation, recordObservations } from "../src/drift/evidence/write.ts";
import { removeOldIncidents } from "../src/drift/incidents/remove-old.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { classifyDue } from "../src/drift/verdicts/classify-due.ts";
import { findUnnoticed, noticeStandings } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "drift");
});

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
const ssh = ({ id: nodeId }: { id: string }, value: "failed" | "succeeded", minutes: number): NewObservation => ({
  ...{ nodeId, kind: "ssh", value, observer: "operator", observedAt: minutesAgo(minutes) },
});

type Stored = { value: string; replaced: boolean; incident_id: string | null };
const storedOf = ({ id }: { id: string }, kind: string) => superuser<Stored[]>`
  SELECT value, replaced_at IS NOT NULL AS replaced, incident_id FROM node_observations
  WHERE node_id = ${id} AND kind = ${kind} ORDER BY observed_at`;

async function activeNode(): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
  return node;
}
const heardAgo = ({ id }: TestNode, seconds: number) => superuser`
  UPDATE node_presence SET heartbeat_at = now() - ${seconds}::int * interval '1 second' WHERE node_id = ${id}`;

type Verdict = {
  causes: { reason: string; next_action?: string }[];
  incident_id: string | null;
  user_state: string;
};
async function verdictOn({ id }: TestNode): Promise<Verdict> {
  await findUnnoticed(system, policy);
  await classifyWhatIsDue(system, policy);
  const [row] = await superuser<Verdict[]>`
    SELECT causes, incident_id, user_state FROM node_verdicts WHERE node_id = ${id}`;
  if (!row) throw new Error("the node has no verdict");
  return row;
}
const reasonsOn = async (node: TestNode) => (await verdictOn(node)).causes.map(({ reason }) => reason);

describe("evidence", () => {
  it("DRIFT-01 is appended when it changes, and only moves when it is repeated", async () => {
    const node = await activeNode();
    expect(await recordObservations(system, [ssh(node, "failed", 30)])).toEqual([node.id]);
    expect(await recordObservations(system, [ssh(node, "failed", 20)])).toEqual([node.id]);
    expect(await storedOf(node, "ssh")).toMatchObject([{ value: "failed", replaced: false }]);
    await recordObservations(system, [ssh(node, "succeeded", 10)]);
    expect(await storedOf(node, "ssh")).toMatchObject([
      { value: "failed", replaced: true },
      { value: "succeeded", replaced: false },
    ]);
    const evidence = (await readEvidence(system, [node.id], [])).get(node.id) ?? [];
    expect(evidence.filter(({ kind }) => kind === "ssh")).toMatchObject([
      { value: "succeeded", observer: "operator" },
    ]);
  });

  it("DRIFT-01 that arrives late is history, and changes nothing about the present", async () => {
    const node = await activeNode();
    await recordObservations(system, [ssh(node, "succeeded", 5)]);
    await recordObservations(system, [ssh(node, "failed", 15)]);
    expect(await storedOf(node, "ssh")).toMatchObject([
      { value: "failed", replaced: true },
      { value: "succeeded", replaced: false },
    ]);
    expect(await recordObservations(system, [ssh(node, "succeeded", 6)])).toEqual([]);
    const twice = ssh(node, "failed", 20);
    await recordObservations(system, [twice]);
    await recordObservations(system, [twice]);
    expect(await storedOf(node, "ssh")).toHaveLength(3);
  });

  it("DRIFT-01 of a process whose clock was ahead outdates nothing that follows", async () => {
    const node = await activeNode();
    await recordObservations(system, [ssh(node, "failed", -14 * 60)]);
    await recordObservations(system, [ssh(node, "succeeded", 0)]);
    expect(await storedOf(node, "ssh")).toMatchObject([
      { value: "failed", replaced: true },
      { value: "succeeded", replaced: false },
    ]);
  });

  it("DRIFT-01 in one batch ends as one by one", async () => {
    const [one, other] = [await activeNode(), await activeNode()];
    const values = ["failed", "failed", "succeeded", "failed", "succeeded"] as const;
    const of = (node: TestNode) => values.map((value, index) => ssh(node, value, 50 - index));
    await recordObservations(system, of(one).toReversed());
    for (const observation of of(other)) await recordObservations(system, [observation]);
    const plain = async (node: TestNode) =>
      (await storedOf(node, "ssh")).map(({ value, replaced }) => [value, replaced]);
    expect(await plain(one)).toEqual(await plain(other));
    expect(await plain(one)).toHaveLength(4);
  });

  it("DRIFT-01 is bounded: the newest and its last changes", async () => {
    const node = await activeNode();
    for (let minute = 100; minute > 0; minute -= 1) {
      await recordObservations(system, [ssh(node, minute % 2 === 0 ? "failed" : "succeeded", minute)]);
    }
    const stored = await storedOf(node, "ssh");
    expect(stored).toHaveLength(20);
    expect(stored.at(-1)).toMatchObject({ value: "succeeded", replaced: false });
  });

  it("DRIFT-01 is bounded also for a node that reports ever new codes", async () => {
    const node = await activeNode();
    for (let hundred = 0; hundred < 12; hundred += 1) {
      const made = Array.from(
        { length: 100 },
        (_, index): NewObservation => ({
          ...{ nodeId: node.id, kind: "finding", key: `made_up_${hundred}_${index}`, value: "present" },
          ...{ observer: "agent", observedAt: minutesAgo(60 - hundred) },
        }),
      );
      await recordObservations(system, made);
    }
    expect(await storedOf(node, "finding")).toHaveLength(1_000);
  });

  it("DRIFT-01 about a node that does not exist is not stored", async () => {
    expect(await recordObservations(system, [ssh({ id: uuidv7() }, "failed", 1)])).toEqual([]);
  });

  it("DRIFT-01 of many writers at once leaves one newest of each kind", async () => {
    const nodes = [await activeNode(), await activeNode()];
    const writes = Array.from({ length: 30 }, (_, index) =>
      recordObservations(
        system,
        (index % 2 === 0 ? nodes : nodes.toReversed()).map((node) =>
          ssh(node, index % 3 === 0 ? "failed" : "succeeded", index + 1),
        ),
      ),
    );
    await Promise.all(writes);
    for (const node of nodes) {
      expect((await storedOf(node, "ssh")).filter(({ replaced }) => !replaced)).toEqual([
        expect.objectContaining({ value: "failed" }),
      ]);
    }
  });
});

describe("an incident", () => {
  it("DRIFT-04 begins with the first cause, follows the verdict, and ends when no cause is left", async () => {
    const node = await activeNode();
    expect(await verdictOn(node)).toMatchObject({ causes: [], incident_id: null, user_state: "normal" });
    await heardAgo(node, 130);
    const silent = await verdictOn(node);
    expect(silent).toMatchObject({
      user_state: "temporary",
      causes: [{ reason: "agent_down", nextAction: "wait" }],
    });
    await heardAgo(node, 600);
    await superuser`UPDATE node_verdicts SET review_at = now() WHERE node_id = ${node.id}`;
    expect(await verdictOn(node)).toMatchObject({
      ...{ incident_id: silent.incident_id, causes: [{ nextAction: "restart_agent" }] },
    });
    const host = { nodeId: node.id, kind: "diagnostic", observer: "operator", observedAt: new Date() } as const;
    await recordObservations(system, [{ ...host, value: "server_tls_untrusted" }]);
    expect(await verdictOn(node)).toMatchObject({
      ...{ incident_id: silent.incident_id, user_state: "operator_action_required" },
      causes: [{ reason: "server_tls_untrusted", symptoms: ["agent_down"] }],
    });
    await sendHeartbeatFrom(node);
    expect(await verdictOn(node)).toMatchObject({
      ...{ incident_id: silent.incident_id, causes: [{ reason: "recovery_unverified" }] },
    });
    await completeRecoveryCheck(node);
    expect(await verdictOn(node)).toMatchObject({ causes: [], incident_id: null });

    const incidents = await superuser`
      SELECT id, reason, severity, closed_at IS NOT NULL AS closed, began_at < opened_at AS later FROM incidents
      WHERE node_id = ${node.id}`;
    expect(incidents).toEqual([
      { id: silent.incident_id, reason: "server_tls_untrusted", severity: "P1", closed: true, later: true },
    ]);
    const said = await superuser<{ reasons: string }[]>`
      SELECT causes->0->>'reason' || ' ' || (causes->0->>'nextAction') AS reasons FROM incident_verdicts
      WHERE incident_id = ${silent.incident_id} ORDER BY at`;
    expect(said.map(({ reasons }) => reasons)).toEqual([
      ...["agent_down wait", "agent_down restart_agent", "server_tls_untrusted repair_certs"],
      "recovery_unverified wait",
    ]);
    expect(await storedOf(node, "diagnostic")).toMatchObject([{ incident_id: silent.incident_id }]);
  });

  it("DRIFT-04 begins with a quarantine, and ends when the recovery is verified after it", async () => {
    const node = await activeNode();
    expect(await reasonsOn(node)).toEqual([]);
    const change = (what: "fence" | "reactivate") =>
      api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: what } });
    await change("fence");
    await noticeStandings(system);
    expect(await verdictOn(node)).toMatchObject({
      ...{ user_state: "operator_action_required", incident_id: expect.any(String) },
      causes: [{ reason: "identity_revoked_or_fenced", nextAction: "reactivate", severity: "P0" }],
    });
    await change("reactivate");
    await noticeStandings(system);
    expect(await verdictOn(node)).toMatchObject({
      ...{ user_state: "recovering", causes: [{ reason: "recovery_unverified" }] },
    });
    await completeRecoveryCheck(node);
    expect(await verdictOn(node)).toMatchObject({ causes: [], incident_id: null });
  });

  it("DRIFT-04 ends with a heartbeat that disproves a record of the host", async () => {
    const node = await activeNode();
    await heardAgo(node, 30);
    await recordObservations(system, [
      { nodeId: node.id, kind: "diagnostic", value: "disk_full", observer: "host", observedAt: new Date() },
    ]);
    expect(await reasonsOn(node)).toEqual(["disk_full"]);
    await sendHeartbeatFrom(node);
    expect(await verdictOn(node)).toMatchObject({ causes: [], incident_id: null });
  });

  it("DRIFT-04 keeps since when a clock is wrong that every heartbeat measures anew", async () => {
    const node = await activeNode();
    const measured = (seconds: number) => superuser`
      UPDATE node_presence SET clock_skew_ms = 600000, heartbeat_at = now() - ${seconds}::int * interval '1 second'
      WHERE node_id = ${node.id}`;
    const since = async () => (await verdictOn(node)).causes.map((one) => (one as { since?: string }).since);
    await measured(60);
    const [first] = await since();
    await measured(0);
    await superuser`UPDATE node_verdicts SET review_at = now() WHERE node_id = ${node.id}`;
    expect(await since()).toEqual([first]);
  });

  it("DRIFT-04 is not opened by looking again, nor by two that look at once", async () => {
    const node = await activeNode();
    await heardAgo(node, 130);
    await findUnnoticed(system, policy);
    await Promise.all([classifyDue(system, policy), classifyDue(system, policy)]);
    await superuser`UPDATE node_verdicts SET review_at = now()`;
    await Promise.all([classifyDue(system, policy), classifyDue(system, policy)]);
    const rows = await superuser`SELECT id FROM incidents WHERE node_id = ${node.id}`;
    expect(rows).toHaveLength(1);
  });

  it("DRIFT-04 is removed when it has been over for long, and not before", async () => {
    const node = await activeNode();
    await recordObservations(system, [ssh(node, "failed", 5)]);
    const { incident_id } = await verdictOn(node);
    const kept = async () => (await superuser`SELECT id FROM incidents WHERE id = ${incident_id}`).length;
    // The node is older than its incident: a certificate that is issued in the course of one has to be proved.
    await superuser`UPDATE node_certificates SET issued_at = now() - interval '201 days' WHERE node_id = ${node.id}`;
    await superuser`UPDATE incidents SET opened_at = now() - interval '200 days' WHERE id = ${incident_id}`;
    await removeOldIncidents(system, { days: 90 });
    expect(await kept(), "it is still open").toBe(1);
    await recordObservations(system, [ssh(node, "succeeded", 1)]);
    await verdictOn(node);
    await removeOldIncidents(system, { days: 90 });
    expect(await kept(), "it has just ended").toBe(1);
    await superuser`UPDATE incidents SET closed_at = now() - interval '91 days' WHERE id = ${incident_id}`;
    await removeOldIncidents(system, { days: 90 });
    expect(await kept()).toBe(0);
  });

  it("DRIFT-04 does not come from a node that reports, however often it is looked at", async () => {
    const node = await activeNode();
    for (let count = 0; count < 3; count += 1) {
      await superuser`UPDATE node_verdicts SET review_at = now()`;
      expect(await reasonsOn(node)).toEqual([]);
    }
    expect(await findUnnoticed(system, policy), "nothing is due").toEqual([]);
    expect((await classifyDue(system, policy)).classified).toBe(0);
  });
});
