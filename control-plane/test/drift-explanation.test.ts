// What operators are shown of a node, and nobody else is.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { addNodeEvidence, explainNode } from "@holdfast/contracts/endpoints/drift";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "explained");
});

const explain = ({ id }: TestNode) => api.operator(org.id)(explainNode, { params: { node_id: id } });
async function look(): Promise<void> {
  await findUnnoticed(system, policy);
  await classifyWhatIsDue(system, policy);
}

describe("the explanation of a node", () => {
  it("DASH-08 of a healthy one: so, with what that rests on, and no more than is known", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    const explained = await explain(node);
    expect(explained).toMatchObject({
      ...{ healthy: true, causes: [], incident: null, user_state: "normal" },
      ...{ headline: `${node.name} is healthy.` },
      layers: { management: "working", workload: "unknown", access: "unknown" },
    });
    const states = Object.fromEntries(explained.parts.map(({ part, state }) => [part, state]));
    expect(states).toMatchObject({
      ...{ process_liveness: "in_order", node_certificate: "in_order" },
      app_runtime: "unknown",
    });
  });

  it("DRIFT-04 DASH-08 of a silent one: how long, that nothing else is known, who looks, and what would change it", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    await look();
    const explained = await explain(node);
    expect(explained.headline).toBe(
      `${node.name} is offline: it stopped reporting 10 minutes ago. Nothing else is known.`,
    );
    expect(explained.causes).toMatchObject([
      {
        ...{ reason: "agent_down", signal: "node_agent_heartbeat_stale", confidence: "low", severity: "P2" },
        // Not that the agent is not running, which nobody knows.
        title: "No heartbeat",
        ...{ owner_id: "node_runtime", next_action: "restart_agent", also_involves: ["provider_network"] },
        budget: { detect_seconds: 300, repair: "next_business_day" },
      },
    ]);
    expect(explained.layers).toEqual({ management: "impaired", workload: "unknown", access: "unknown" });
    expect(explained.incident?.id).toBe(explained.history[0]?.incident_id);
    const used = explained.evidence.filter(({ id }) => explained.causes[0]?.evidence.includes(id));
    expect(used).toMatchObject([{ kind: "heartbeat", observer: "agent", fresh: false }]);
    expect(explained.parts.find(({ part }) => part === "process_liveness")?.state).toBe("drifted");
  });

  it("DRIFT-04 with several causes: all of them, worst first, each with its own evidence", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    const common = { nodeId: node.id, observedAt: new Date() };
    await recordObservations(system, [
      { ...common, kind: "ssh", value: "failed", observer: "operator" },
      {
        ...common,
        kind: "finding",
        key: "disk_full",
        value: "present",
        observer: "agent",
        detail: { text: "0 B" },
      },
    ]);
    const { causes, headline } = await explain(node);
    expect(causes.map(({ reason }) => reason)).toEqual(["disk_full", "node_ops_ssh_failed"]);
    expect(causes.map(({ runbook }) => runbook)).toEqual(["/runbooks/disk_full", "/runbooks/node_ops_ssh_failed"]);
    expect(headline).toContain("Disk full");
    expect(headline).toContain("Another cause is listed below.");
    expect(causes[0]?.message).toContain("0 B");
    expect(new Set(causes.flatMap(({ evidence }) => evidence)).size).toBe(2);
  });

  it("DRIFT-08 of a silent one whose host was looked at: the host's own cause, and who handed it in is audited", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    const at = new Date(Date.now() - 60_000).toISOString();
    const record = {
      at,
      reason: "server_tls_untrusted",
      detail: "self-signed certificate",
      correlation_id: "on-host-1",
    };
    const client = api.operator(org.id);
    const explained = await client(addNodeEvidence, {
      params: { node_id: node.id },
      body: { records: [record] },
    });
    expect(explained.causes).toMatchObject([
      {
        ...{ reason: "server_tls_untrusted", owner_id: "pki", next_action: "repair_certs" },
        symptoms: [{ reason: "agent_down" }],
        message: expect.stringContaining("self-signed certificate"),
      },
    ]);
    const { items } = await client(listAudit, { query: { action: "node.evidence_add" } });
    expect(items).toMatchObject([{ target_id: node.id, details: { kinds: ["diagnostic"] } }]);
  });

  it("DRIFT-08 is not changed by evidence from the future, or by none at all", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    const hand = (body: { ssh?: "failed"; observed_at?: string }) =>
      api.operator(org.id)(addNodeEvidence, { params: { node_id: node.id }, body });
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    await expect(hand({ ssh: "failed", observed_at: ahead })).rejects.toThrow("observed_at is in the future");
    await expect(hand({})).rejects.toMatchObject({ envelope: { code: "invalid_request" } });
    expect((await explain(node)).causes).toEqual([]);
  });

  it("DRIFT-13 of one that nobody can log in to: that, and not that its agent is down", async () => {
    const node = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, node);
    const hand = (body: { ssh?: "failed" | "succeeded"; guest_agent?: "down" }) =>
      api.operator(org.id)(addNodeEvidence, { params: { node_id: node.id }, body });
    expect((await hand({ ssh: "failed" })).causes.map(({ reason }) => reason)).toEqual(["node_ops_ssh_failed"]);
    expect((await hand({ guest_agent: "down" })).causes).toMatchObject([
      { reason: "node_ops_access_unhealthy", symptoms: [{ reason: "node_ops_ssh_failed" }], user_state: "normal" },
    ]);
    expect((await hand({ ssh: "succeeded" })).causes).toEqual([]);
  });

  it("SEC-01 of another organization's node is that of no node", async () => {
    const node = await enrollTestNode(api, org.id);
    const other = await createOrg(api, "stranger");
    const ask = (token: string, id: string) =>
      fetch(`${api.url}/v1/nodes/${id}/explanation`, { headers: { authorization: `Bearer ${token}` } });
    const token = await tokenFor(api, other, "owner");
    const [foreign, unknown] = [await ask(token, node.id), await ask(token, org.id)];
    expect([foreign.status, unknown.status]).toEqual([404, 404]);
    const without = ({ correlation_id: _, ...rest }: Record<string, unknown>) => JSON.stringify(rest);
    const bodies = (await Promise.all([foreign.json(), unknown.json()])) as { error: Record<string, unknown> }[];
    expect(without(bodies[0]?.error ?? {})).toBe(without(bodies[1]?.error ?? {}));
  });
});
