// Missed renewals as the log and the metric count them: by the same rule as the page, whatever the certificate.

import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { certificateStage } from "@holdfast/contracts/node/certificate-stage";
import { createMetrics } from "@holdfast/service/metrics";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, makeKeyRequest, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { measureLate, selectLate } from "../src/nodes/identity/late-certificates.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "late");
  node = await enrollTestNode(api, org.id);
  await sendHeartbeatFrom(node);
});
beforeEach(() => age(12));

const HOUR = 3_600_000;

/** Makes the node's certificates a day's, of this age. */
async function age(hours: number): Promise<void> {
  const notBefore = new Date(Date.now() - hours * HOUR);
  const notAfter = new Date(notBefore.getTime() + 24 * HOUR);
  await superuser`
    UPDATE node_certificates SET not_before = ${notBefore}, not_after = ${notAfter} WHERE node_id = ${node.id}`;
}

async function measured(): Promise<Record<string, number>> {
  const metrics = createMetrics("api");
  measureLate(metrics, system);
  return countsIn(await metrics.registry.metrics());
}

function countsIn(text: string): Record<string, number> {
  const lines = text.matchAll(
    /^holdfast_nodes_certificate_late\{(?=[^}]*process="api")[^}]*reason="(\w+)"[^}]*\} (\d+)$/gm,
  );
  return Object.fromEntries([...lines].map(([, reason, count]) => [reason, Number(count)]));
}

const lateIds = async () => (await selectLate(system)).map(({ id }) => id);

describe("a missed renewal", () => {
  it.for([0, 12, 17.9, 18.1, 23.9, 24.1, 100])(
    "ID-03 is the same to log, metric and page at %d hours",
    async (hours) => {
      await age(hours);
      const stage = certificateStage({ notBefore: -hours * HOUR, notAfter: (24 - hours) * HOUR }, 0);
      expect(await lateIds()).toEqual(stage === "current" ? [] : [node.id]);
      expect(await measured()).toEqual({
        cert_renewal_overdue: stage === "renewal_overdue" ? 1 : 0,
        cert_expired: stage === "expired" ? 1 : 0,
      });
      const shown = await api.operator(org.id)(getNode, { params: { node_id: node.id } });
      expect(shown.attention.map(({ code }) => code)).toEqual(
        stage === "current" ? [] : [stage === "expired" ? "recovery_token_missing" : `cert_${stage}`],
      );
    },
  );

  it("ID-03 counts by the certificate in use: one that was issued and never taken changes nothing", async () => {
    await age(20);
    const { csr } = await makeKeyRequest();
    const renewed = await node.client.ask({ method: "POST", path: node.path("renew"), body: { csr } });
    expect(renewed.status).toBe(200);
    // Until the node is heard again, it may have taken it.
    expect(await lateIds()).toEqual([]);
    await sendHeartbeatFrom(node);
    expect(await lateIds()).toEqual([node.id]);
    expect(await measured()).toMatchObject({ cert_renewal_overdue: 1 });
    await superuser`DELETE FROM node_certificates WHERE node_id = ${node.id} AND issued_for = 'renewal'`;
  });

  it("ID-03 is measured at the api, and counted anew after half a minute", async () => {
    const scraped = await (await fetch(`${api.url}/metrics`)).text();
    expect(countsIn(scraped)).toEqual({ cert_renewal_overdue: 0, cert_expired: 0 });
    let clock = 0;
    const metrics = createMetrics("api");
    measureLate(metrics, system, () => clock);
    const overdue = async () => countsIn(await metrics.registry.metrics())["cert_renewal_overdue"];
    expect(await overdue()).toBe(0);
    await age(20);
    clock = 29_999;
    expect(await overdue()).toBe(0);
    clock = 30_000;
    expect(await overdue()).toBe(1);
  });

  it("ID-03 of a quarantined node fires no alert, and is still logged", async () => {
    const change = (what: "drain" | "reactivate") =>
      api.operator(org.id)(changeNode, { params: { node_id: node.id }, body: { change: what } });
    await age(20);
    await change("drain");
    expect(await measured()).toEqual({ cert_renewal_overdue: 0, cert_expired: 0 });
    expect(await lateIds()).toEqual([node.id]);
    await change("reactivate");
    expect(await measured()).toMatchObject({ cert_renewal_overdue: 1 });
  });
});
