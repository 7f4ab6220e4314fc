// The forecast of a fleet: which nodes lose their identity while the control plane is down.

import { CallError } from "@holdfast/contracts/client";
import { getFleetForecast } from "@holdfast/contracts/endpoints/fleet";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { seedFleet } from "../../testkit/api/fleet.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type Sql, withOrg } from "../src/database/connect.ts";
import { selectLosses } from "../src/fleet/forecast/queries.ts";

const HOUR = 3_600_000;
let api: TestApi;
let app: Sql;
let superuser: Sql;
let org: TestOrg;

beforeAll(async () => {
  api = await startTestApi();
  ({ app, superuser } = openRoles(api.database));
  org = await createOrg(api, "tide");
  // Their certificates expire in 23 hours, but for some.
  await seedFleet(superuser, org.id, 10);
  const expire = (name: string, interval: string) => superuser`
    UPDATE node_certificates SET not_after = now() + ${interval}::interval FROM nodes n
    WHERE n.id = node_id AND n.org_id = ${org.id} AND n.name = ${name}`;
  await expire("sim-00001", "90 minutes");
  await expire("sim-00002", "3 hours");
  await expire("sim-00003", "-1 minute");
  await superuser`UPDATE nodes SET status = 'retired', revoked_at = now() WHERE name = 'sim-00004'`;
  await superuser`UPDATE nodes SET status = 'quarantined', revoked_at = now() WHERE name = 'sim-00005'`;
  await seedFleet(superuser, (await createOrg(api, "ebb")).id, 3);
});

const forecast = (until?: Date) =>
  api.operator(org.id)(getFleetForecast, { query: until ? { until: until.toISOString() } : {} });

describe("GET /v1/fleet/forecast", () => {
  it("says how many nodes lose their identity by when, and that none of them recovers without a token", async () => {
    const { nodes, points, until, message, at } = await forecast();
    expect(nodes).toBe(7);
    expect(points).toHaveLength(49);
    expect([0, 1, 2, 3, 22, 24, 48].map((hour) => points[hour]?.lost)).toEqual([0, 0, 1, 2, 2, 7, 7]);
    expect(points.every(({ recovering }) => recovering === 0)).toBe(true);
    expect(Date.parse(until.at) - Date.parse(at)).toBe(24 * HOUR);
    expect(message).toMatch(
      /^If the control plane stays down until .* UTC, 7 of 7 nodes lose their identity, and none/,
    );
  });

  it("answers for a time of choice, within two days", async () => {
    expect((await forecast(new Date(Date.now() + 2 * HOUR))).until.lost).toBe(1);
    expect((await forecast(new Date(Date.now() + 5 * HOUR))).until.lost).toBe(2);
    for (const wrong of [new Date(Date.now() - HOUR), new Date(Date.now() + 49 * HOUR)]) {
      await expect(forecast(wrong)).rejects.toMatchObject({ envelope: { code: "invalid_request" } });
    }
  });

  it("SEC-01 is for operators of nodes", async () => {
    const member = api.as(await tokenFor(api, org, "member"));
    const refused = await member(getFleetForecast, {}).catch((error: unknown) => error);
    expect(refused instanceof CallError && refused.envelope.code).toBe("forbidden");
  });

  it("groups 10,000 nodes by their times in one statement", async () => {
    const many = await createOrg(api, "shoal");
    await seedFleet(superuser, many.id, 10_000);
    await superuser`ANALYZE nodes, node_certificates`;
    const times = Array.from({ length: 49 }, (_, hour) => new Date(Date.now() + hour * HOUR));
    const losses = await withOrg(app, many.id, (tx) => selectLosses(tx, times));
    expect(losses).toEqual([{ from: 23, recoverBefore: 0, nodes: 10_000 }]);
  });
});
