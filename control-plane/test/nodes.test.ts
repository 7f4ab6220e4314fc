// Nodes over the real api: what agents tell, what operators see and change, and how fast it counts.

import { CallError } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import {
  changeNode,
  getNode,
  listNodeDiagnostics,
  listNodes,
  type NodeChange,
  updateNode,
} from "@holdfast/contracts/endpoints/nodes";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { classifyAll } from "../../testkit/api/fleet.ts";
import {
  type Answer,
  enrollTestNode,
  heartbeatOf,
  hostFacts,
  makeKeyRequest,
  openClient,
  sendHeartbeatFrom,
  type TestNode,
  tokenOf,
} from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { selectLate } from "../src/nodes/identity/late-certificates.ts";
import { removeOldIdentities, reportOverdueRenewals } from "../src/nodes/identity/upkeep.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "ours");
});

const read = (node: TestNode) => api.operator(node.orgId)(getNode, { params: { node_id: node.id } });
const change = (node: TestNode, what: NodeChange, reason?: string) =>
  api.operator(node.orgId)(changeNode, {
    params: { node_id: node.id },
    body: { change: what, ...(reason ? { reason } : {}) },
  });

async function refusal(work: Promise<unknown>): Promise<CallError["envelope"]> {
  const error = await work.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof CallError) return error.envelope;
  throw error;
}

/** A poll that the server holds for certain: of two of one process, the newer one has ended the older. */
async function heldPoll(nodeUrl: string, node: TestNode): Promise<{ answer: Promise<Answer> }> {
  const instanceId = uuidv7();
  const polls = [0, 1].map(() =>
    openClient(nodeUrl, node.tls, instanceId).ask({ path: node.path("tasks/wait?wait=25") }),
  );
  const ended = await Promise.race(polls.map((poll, index) => poll.then(() => index)));
  const answer = polls[1 - ended];
  if (!answer) throw new Error("both polls ended");
  return { answer };
}

describe("a heartbeat", () => {
  it("AGENT-06 makes an enrolled node active, and shows what it said", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "beating" });
    expect(await read(node)).toMatchObject({
      status: "enrolling",
      connection: "never",
      facts: null,
      attention: [],
    });
    const answer = await sendHeartbeatFrom(node, { running: 3, unsent_results: 2 });
    expect(answer).toMatchObject({ status: 200, body: { node: { status: "active", reason: null }, cancel: [] } });
    const shown = await read(node);
    expect(shown).toMatchObject({
      status: "active",
      connection: "online",
      agent_version: hostFacts.agent_version,
      os: "debian 13",
      arch: "x64",
      capabilities: ["os_users"],
      facts: hostFacts,
      boot_id: "boot-1",
      running_tasks: 3,
      unsent_results: 2,
      profile: { name: "default", version: 1 },
      attention: [],
    });
    expect(shown.certificate?.serial).toMatch(/^[0-9a-f]{32}$/);
    expect(Math.abs(shown.clock_skew_seconds ?? 99)).toBeLessThan(30);
  });

  it("AGENT-06 is taken from an older agent, which has counters that are no more", async () => {
    const node = await enrollTestNode(api, org.id);
    const counters = { ...heartbeatOf().counters, recovery_enrollment_attempts: 0 };
    expect(await sendHeartbeatFrom(node, { counters })).toMatchObject({ status: 200 });
  });

  it("AGENT-06 is accepted from an agent that reports more than this server knows", async () => {
    const node = await enrollTestNode(api, org.id);
    const { facts, ...known } = heartbeatOf();
    const body = { ...known, facts: { ...facts, of_tomorrow: 1 }, of_tomorrow: { nested: true } };
    const { status } = await node.client.ask({ method: "POST", path: node.path("heartbeat"), body });
    expect(status).toBe(200);
    expect(JSON.stringify(await read(node))).not.toContain("of_tomorrow");
  });

  it("AGENT-06 carries keys and profile only to an agent whose own are out of date", async () => {
    const node = await enrollTestNode(api, org.id);
    const { verifiers, profile } = node.enrolled;
    const current = {
      verifier_kids: verifiers.keys.map(({ kid }) => kid),
      profile: { name: profile.name, version: profile.version },
    };
    const same = await sendHeartbeatFrom(node, current);
    expect([same.body["verifiers"], same.body["profile"]]).toEqual([undefined, undefined]);
    const other = await sendHeartbeatFrom(node, {
      verifier_kids: ["old"],
      profile: { name: "default", version: 99 },
    });
    expect(other.body).toMatchObject({ verifiers, profile });
  });

  it("ID-14 shows a clock that is off, in either direction", async () => {
    const node = await enrollTestNode(api, org.id);
    for (const [minutes, word] of [
      [10, "ahead of"],
      [-10, "behind"],
    ] as const) {
      await sendHeartbeatFrom(node, { sent_at: new Date(Date.now() + minutes * 60_000).toISOString() });
      const { attention } = await read(node);
      expect(attention).toMatchObject([{ code: "clock_skew", message: expect.stringContaining(word) }]);
    }
    await sendHeartbeatFrom(node, { sent_at: "9999-01-01T00:00:00Z" });
    expect((await read(node)).attention[0]?.code).toBe("clock_skew");
  });

  it("AGENT-06 that stays away is noticed", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "silent" });
    await sendHeartbeatFrom(node);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${node.id}`;
    expect(await read(node)).toMatchObject({ connection: "stale", attention: [{ code: "heartbeat_stale" }] });
  });

  it("AGENT-06 ID-14 from the future shows a wrong clock and not a node that is online", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "ahead" });
    await sendHeartbeatFrom(node);
    await superuser`UPDATE node_presence SET heartbeat_at = now() + interval '14 hours' WHERE node_id = ${node.id}`;
    expect(await read(node)).toMatchObject({
      connection: "stale",
      attention: [{ code: "heartbeat_in_future", message: expect.stringContaining("13 hours in the future") }],
    });
    await sendHeartbeatFrom(node);
    expect(await read(node)).toMatchObject({ connection: "online", attention: [] });
  });

  it("AGENT-05 brings the agent's own findings", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node, { findings: [{ reason: "disk_full", detail: "/var has 0 bytes" }] });
    const expected = [
      { code: "disk_full", message: expect.stringContaining("/var has 0 bytes"), next_step: expect.any(String) },
    ];
    await expect.poll(async () => (await read(node)).attention).toMatchObject(expected);
    await classifyAll(superuser);
    const listed = await api.operator(org.id)(listNodes, { query: { name: node.name } });
    expect(listed.items[0]?.attention).toMatchObject(expected);
  });

  it("SEC-03 with characters that the database cannot store is refused", async () => {
    const node = await enrollTestNode(api, org.id);
    const answer = await sendHeartbeatFrom(node, { facts: { ...hostFacts, hostname: "a\0b" } });
    expect(answer.body).toMatchObject({ code: "invalid_request" });
  });
});

describe("renewal", () => {
  const renew = (node: TestNode, csr: string, from = node.client): Promise<Answer> =>
    from.ask({ method: "POST", path: node.path("renew"), body: { csr } });

  it("ID-03 gives a fresh key a certificate, while the present one goes on working", async () => {
    const node = await enrollTestNode(api, org.id);
    const { key, csr } = await makeKeyRequest();
    const answer = await renew(node, csr);
    expect(answer).toMatchObject({ status: 200, body: { trust_bundle: node.tls.ca } });
    const renewed = openClient(api.nodeUrl, { ...node.tls, key, cert: String(answer.body["certificate"]) });
    expect((await renewed.ask({ path: node.path("tasks/wait?wait=0&room=0") })).status).toBe(200);
    expect((await sendHeartbeatFrom(node)).status).toBe(200);
    const same = await renew(node, csr);
    expect(same.body["certificate"], "asked again for the same key").toBe(answer.body["certificate"]);
  });

  it.for([14 * 60, -2])(
    "ID-03 ID-14 issues nothing while the api's clock is %d minutes off the database's",
    async (minutes) => {
      const node = await enrollTestNode(api, org.id);
      const { csr } = await makeKeyRequest();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + minutes * 60_000 });
      onTestFinished(() => void vi.useRealTimers());
      expect(await renew(node, csr)).toMatchObject({ status: 503, body: { code: "server_clock_skew" } });
      vi.useRealTimers();
      expect((await renew(node, csr)).status).toBe(200);
    },
  );

  it("ID-03 takes no bad request, and none for another node", async () => {
    const node = await enrollTestNode(api, org.id);
    const other = await enrollTestNode(api, org.id);
    expect((await renew(node, "nonsense")).body["code"]).toBe("csr_invalid");
    const { csr } = await makeKeyRequest();
    expect((await renew(node, csr, other.client)).body["code"]).toBe("node_mismatch");
    expect((await renew(node, csr)).status).toBe(200);
  });

  it("ID-09 that races with a revocation leaves no certificate that counts", async () => {
    const node = await enrollTestNode(api, org.id);
    const requests = await Promise.all(Array.from({ length: 8 }, () => makeKeyRequest()));
    const renewals = requests.map(({ csr }) =>
      renew(node, csr, openClient(api.nodeUrl, node.tls)).catch(() => undefined),
    );
    await change(node, "revoke");
    await Promise.all(renewals);
    const good = await superuser`SELECT FROM node_certificates WHERE node_id = ${node.id} AND revoked_at IS NULL`;
    expect(good).toHaveLength(0);
  });

  it("ID-03 that is missed is shown and logged long before the certificate ends", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "late" });
    await sendHeartbeatFrom(node);
    expect((await selectLate(system)).map(({ id }) => id)).not.toContain(node.id);
    await superuser`
      UPDATE node_certificates SET not_before = now() - interval '19 hours', not_after = now() + interval '5 hours'
      WHERE node_id = ${node.id}`;
    expect((await read(node)).attention.map(({ code }) => code)).toEqual(["cert_renewal_overdue"]);
    const warned: object[] = [];
    const look = () => reportOverdueRenewals(system, { warn: (details: object) => warned.push(details) } as never);
    await look();
    await look();
    expect(warned.filter((one) => (one as { node_id: string }).node_id === node.id)).toHaveLength(1);
    await superuser`
      UPDATE node_certificates SET not_before = now() - interval '25 hours', not_after = now() - interval '1 hour'
      WHERE node_id = ${node.id}`;
    expect((await read(node)).attention.map(({ code }) => code)).toEqual(["recovery_token_missing"]);
  });
});

describe("an operator's change", () => {
  it("ID-09 leads through the lifecycle, with its reason, and is audited", async () => {
    const node = await enrollTestNode(api, org.id, { hostname: "changing" });
    await sendHeartbeatFrom(node);
    expect(await change(node, "drain", "moving racks")).toMatchObject({
      status: "draining",
      status_reason: "moving racks",
    });
    expect((await sendHeartbeatFrom(node)).body).toMatchObject({
      node: { status: "draining", reason: "moving racks" },
    });
    expect(await change(node, "reactivate")).toMatchObject({ status: "active", status_reason: null });
    expect(await change(node, "fence", "odd")).toMatchObject({
      status: "quarantined",
      attention: [{ code: "node_quarantined", message: expect.stringContaining("odd") }],
    });
    expect(await refusal(change(node, "drain"))).toMatchObject({
      code: "node_change_refused",
      details: { status: "quarantined", change: "drain" },
    });
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.change", limit: 2 } });
    expect(items).toMatchObject([
      { result: "failed", reason: "node_change_refused", target_id: node.id },
      { result: "allowed", target_id: node.id, details: { change: "fence", from: "active", to: "quarantined" } },
    ]);
  });

  it("ID-09 fence holds the node's poll as usual, which answers without tasks and says why", async () => {
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    await change(node, "fence", "suspicious");
    const answer = await node.client.ask({ path: node.path("tasks/wait?wait=0") });
    expect(answer).toMatchObject({
      status: 200,
      body: { node: { status: "quarantined", reason: "suspicious" }, tasks: [], cancel: [] },
    });
  });

  it("ID-09 revoke ends a poll that another replica holds", async () => {
    const replica = await startTestApi({ database: api.database });
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    const elsewhere = openClient(replica.nodeUrl, node.tls);
    expect((await elsewhere.ask({ path: node.path("tasks/wait?wait=0") })).status).toBe(200);
    const polls = [elsewhere, node.client].map((client) => client.ask({ path: node.path("tasks/wait?wait=25") }));
    // Asked before the polls can end by themselves; they answer because of the revocation.
    await change(node, "revoke", "stolen");
    for (const poll of polls)
      expect(await poll).toMatchObject({ status: 401, body: { code: "identity_revoked" } });
    expect((await read(node)).attention[0]).toMatchObject({
      code: "identity_revoked",
      message: expect.stringContaining("stolen"),
    });
    await replica.stop();
  });

  it("ID-09 fence and reactivate end a held poll at once, here and at another replica", async () => {
    const replica = await startTestApi({ database: api.database });
    const [node, other] = [await enrollTestNode(api, org.id), await enrollTestNode(api, org.id)];
    for (const one of [node, other]) await sendHeartbeatFrom(one);
    for (const [what, status] of [
      ["fence", "quarantined"],
      ["reactivate", "active"],
    ] as const) {
      const polls = await Promise.all([api, replica].map(({ nodeUrl }) => heldPoll(nodeUrl, node)));
      await change(node, what);
      const untouched = openClient(api.nodeUrl, other.tls);
      const ended = Promise.all(polls.map(({ answer }) => answer));
      const waited = untouched.ask({ path: other.path("tasks/wait?wait=20") }).catch(() => "closed");
      expect(await Promise.race([ended, waited])).toMatchObject(
        polls.map(() => ({ status: 200, body: { node: { status }, tasks: [], cancel: [] } })),
      );
      untouched.close();
    }
    await replica.stop();
  });

  it("ID-09 of a node that is not there is not found", async () => {
    const params = { node_id: uuidv7() };
    const client = api.operator(org.id);
    expect(await refusal(client(changeNode, { params, body: { change: "fence" } }))).toMatchObject({
      code: "not_found",
    });
  });

  it("SEC-01 is not for members, who may look", async () => {
    const node = await enrollTestNode(api, org.id);
    const member = api.as(await tokenFor(api, org, "member"));
    const params = { node_id: node.id };
    expect(await member(getNode, { params })).toMatchObject({ id: node.id });
    const refused = await refusal(member(changeNode, { params, body: { change: "fence" } }));
    expect(refused).toMatchObject({ code: "forbidden", details: { needed: "nodes:write" } });
  });
});

describe("nodes of an organization", () => {
  it("have a name of their own, which can be changed", async () => {
    const own = await createOrg(api, "naming");
    const [one, two] = [
      await enrollTestNode(api, own.id, { hostname: "one" }),
      await enrollTestNode(api, own.id, { hostname: "two" }),
    ];
    const rename = (node: TestNode, name: string) =>
      api.operator(own.id)(updateNode, { params: { node_id: node.id }, body: { name } });
    expect(await rename(one, "First")).toMatchObject({ name: "first" });
    expect(await refusal(rename(two, "first"))).toMatchObject({ code: "name_taken" });
    expect(await refusal(rename(two, "not a name"))).toMatchObject({ code: "invalid_request" });
    expect(await rename(two, "one")).toMatchObject({ name: "one" });
  });

  it("are listed newest first, by page, name and status", async () => {
    const own = await createOrg(api, "listing");
    const nodes = [];
    for (const hostname of ["a", "b", "c"]) nodes.push(await enrollTestNode(api, own.id, { hostname }));
    const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
    await sendHeartbeatFrom(b);
    const list = async (query: { limit?: number; cursor?: string; name?: string; status?: "active" }) => {
      const { items, next_cursor } = await api.operator(own.id)(listNodes, { query });
      return { ids: items.map(({ id }) => id), next_cursor };
    };
    expect((await list({})).ids).toEqual([c.id, b.id, a.id]);
    const first = await list({ limit: 2 });
    expect(first.ids).toEqual([c.id, b.id]);
    expect((await list({ limit: 2, cursor: first.next_cursor ?? "" })).ids).toEqual([a.id]);
    expect((await list({ name: "a" })).ids).toEqual([a.id]);
    expect((await list({ status: "active" })).ids).toEqual([b.id]);
  });

  it("SEC-01 are seen by nobody else", async () => {
    const other = await createOrg(api, "other");
    const node = await enrollTestNode(api, org.id);
    const stranger = api.as(await tokenFor(api, other, "owner"));
    const params = { node_id: node.id };
    expect((await stranger(listNodes, {})).items).toEqual([]);
    const refused = await Promise.all([
      refusal(stranger(getNode, { params })),
      refusal(stranger(updateNode, { params, body: { name: "mine" } })),
      refusal(stranger(changeNode, { params, body: { change: "retire" } })),
      refusal(stranger(listNodeDiagnostics, { params })),
      refusal(stranger(createEnrollmentToken, { body: { node_id: node.id } })),
    ]);
    expect(refused.map(({ code }) => code)).toEqual(Array(5).fill("not_found"));
    expect((await sendHeartbeatFrom(node)).status).toBe(200);
  });
});

describe("diagnostic records", () => {
  const records = (from: number, count: number): DiagnosticRecord[] =>
    Array.from({ length: count }, (_, index) => ({
      seq: from + index,
      at: new Date().toISOString(),
      reason: "task_poll_failed",
      detail: `record ${from + index}`,
      instance_id: "018f0000-0000-4000-8000-000000000000",
      correlation_id: null,
    }));
  const deliver = (node: TestNode, sent: DiagnosticRecord[]) =>
    node.client.ask({ method: "POST", path: node.path("diagnostics"), body: { records: sent } });
  const stored = async (node: TestNode) =>
    (await api.operator(node.orgId)(listNodeDiagnostics, { params: { node_id: node.id } })).items;

  it("AGENT-01 are kept as they came, newest first, and only once", async () => {
    const node = await enrollTestNode(api, org.id);
    const sent = records(1, 3);
    expect((await deliver(node, sent)).body).toEqual({ seq: 3 });
    expect((await deliver(node, sent)).body).toEqual({ seq: 3 });
    expect(await stored(node)).toEqual(sent.toReversed());
  });

  it("AGENT-01 are kept up to 200 of a node, the newest", async () => {
    const node = await enrollTestNode(api, org.id);
    const other = await enrollTestNode(api, org.id);
    await deliver(other, records(1, 5));
    for (let start = 1; start <= 250; start += 50) await deliver(node, records(start, 50));
    const kept = await stored(node);
    expect(kept.map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, index) => 250 - index));
    expect(await stored(other)).toHaveLength(5);
  });

  it("AGENT-01 of an agent that lost its state and counts anew are taken too", async () => {
    const node = await enrollTestNode(api, org.id);
    await deliver(node, records(90, 20));
    expect((await deliver(node, records(1, 2))).body).toEqual({ seq: 2 });
    expect((await stored(node)).slice(0, 2).map(({ seq }) => seq)).toEqual([2, 1]);
  });
});

describe("old identities", () => {
  it("ID-01 are removed after 30 days, and nothing younger", async () => {
    const node = await enrollTestNode(api, org.id);
    await tokenOf(api, org.id);
    const counts = async () => {
      const [row] = await superuser`
        SELECT (SELECT count(*)::int FROM enrollment_tokens) AS tokens,
               (SELECT count(*)::int FROM node_certificates) AS certificates`;
      return row as unknown as { tokens: number; certificates: number };
    };
    const before = await counts();
    expect(await removeOldIdentities(system)).toEqual({ enrollment_tokens: 0, node_certificates: 0 });
    await superuser`
      UPDATE enrollment_tokens SET expires_at = now() - interval '31 days' WHERE enrolled_node_id = ${node.id}`;
    await superuser`
      UPDATE node_certificates SET not_after = now() - interval '31 days' WHERE node_id = ${node.id}`;
    expect(await removeOldIdentities(system)).toEqual({ enrollment_tokens: 1, node_certificates: 1 });
    expect(await counts()).toEqual({ tokens: before.tokens - 1, certificates: before.certificates - 1 });
    expect(await read(node)).toMatchObject({ id: node.id, certificate: null });
  });
});
