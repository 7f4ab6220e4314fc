// The brake, from what is stored: while the control plane is suspected, tenants see the state of their allocations and get no
// notifications; afterwards they get those that still say something.

import { listAllocationNotifications } from "@holdfast/contracts/endpoints/allocations";
import { getFleet } from "@holdfast/contracts/endpoints/fleet";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { classifyWhatIsDue, firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { newAllocation } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { readBrake } from "../src/drift/brake/read.ts";
import { recordPlatform } from "../src/drift/evidence/platform.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { releaseNotifications } from "../src/drift/tenants/release.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";

const FLEET = 6;
let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let member: Browser;
let nodes: TestNode[];
let allocations: string[];

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "kelp");
  member = await addMember(api, org, "ada@kelp.example", "member");
  nodes = [];
  for (let count = 0; count < FLEET; count += 1) nodes.push(await enrollTestNode(api, org.id));
  for (const node of nodes) await firstHeartbeat(superuser, node);
  const userId = member.me.id ?? "";
  const made = nodes.map(async ({ id }) => (await newAllocation(superuser, org, id, { userId })).allocationId);
  allocations = await Promise.all(made);
});

beforeEach(async () => {
  await superuser`DELETE FROM allocation_notifications`;
  await superuser`UPDATE allocations SET user_state = 'normal', notified_state = NULL`;
  await superuser`DELETE FROM node_observations WHERE kind = 'instances'`;
  await heard(0);
  await classify();
});

/** All of them, or so many. */
const heard = (secondsAgo: number, count = FLEET) => superuser`
  UPDATE node_presence SET heartbeat_at = now() - ${secondsAgo}::int * interval '1 second', disconnected_at = NULL
  WHERE node_id = ANY(${nodes.slice(0, count).map(({ id }) => id)}::uuid[])`;

async function classify() {
  await findUnnoticed(system, policy);
  await superuser`UPDATE node_verdicts SET review_at = now()`;
  await classifyWhatIsDue(system, policy);
}

const shown = async () =>
  (await superuser<{ user_state: string }[]>`SELECT user_state FROM allocations ORDER BY id`).map(
    ({ user_state }) => user_state,
  );
const notified = async () => {
  const rows = await superuser<{ state: string }[]>`SELECT state FROM allocation_notifications ORDER BY id`;
  return rows.map(({ state }) => state);
};
const every = (state: string) => Array.from({ length: FLEET }, () => state);

describe("the brake", () => {
  it("DRIFT-13 is off while few nodes are lost, and tenants are notified at once", async () => {
    await heard(130, 3);
    expect(await readBrake(system)).toEqual({ braked: false });
    await classify();
    expect(await notified()).toEqual(["temporary", "temporary", "temporary"]);
  });

  it("DRIFT-13 holds notifications back when most of the fleet is lost, and none is sent if the nodes return", async () => {
    await heard(130);
    expect(await readBrake(system)).toEqual({ braked: true, why: "fleet_lost" });
    await classify();
    expect(await shown()).toEqual(every("temporary"));
    expect(await notified()).toEqual([]);
    expect(await releaseNotifications(system)).toEqual([]);
    const fleet = await api.operator(org.id)(getFleet, {});
    await expect
      .poll(async () => (await api.operator(org.id)(getFleet, {})).brake)
      .toMatchObject({ why: "fleet_lost", message: expect.stringContaining("is suspected") });
    expect(fleet.total).toBe(FLEET);
    await heard(0);
    await classify();
    expect(await shown()).toEqual(every("normal"));
    expect(await releaseNotifications(system)).toEqual([]);
    expect(await notified()).toEqual([]);
  });

  it("DRIFT-13 sends what waited, once, when it is over and still true", async () => {
    await heard(130);
    await classify();
    await heard(0, 4);
    await classify();
    expect(await readBrake(system)).toEqual({ braked: false });
    const sent = await Promise.all([releaseNotifications(system), releaseNotifications(system)]);
    expect(sent.flat().toSorted()).toEqual(allocations.slice(4).toSorted());
    expect(await releaseNotifications(system)).toEqual([]);
    expect(await notified()).toEqual(["temporary", "temporary"]);
    const params = { allocation_id: allocations[5] ?? "" };
    const { items } = await member.client(org.id)(listAllocationNotifications, { params });
    expect(items).toMatchObject([{ state: "temporary" }]);
  });

  it("DRIFT-13 counts nodes that disconnect, and those that are rejected, and forgets those lost long ago", async () => {
    await superuser`UPDATE node_presence SET disconnected_at = now()`;
    expect(await readBrake(system)).toMatchObject({ braked: true });
    await heard(0);
    await superuser`
      INSERT INTO audit_failures (id, org_id, actor_type, actor_id, credential_id, action, reason, count, last_seen_at)
      SELECT gen_random_uuid(), org_id, 'node', id, '00', 'node.connect', 'cert_expired', 1, now() + interval '1 second'
      FROM nodes`;
    expect(await readBrake(system)).toMatchObject({ braked: true });
    await superuser`DELETE FROM audit_failures`;
    await heard(3_600);
    expect(await readBrake(system)).toEqual({ braked: false });
  });

  it("DRIFT-13 ID-11 holds for an outage of the api and for a CA mismatch", async () => {
    const now = new Date();
    const [began, seen] = [new Date(now.getTime() - 60_000), now];
    const said = async (
      kind: "control_plane" | "ca_trust",
      value: "not_ready" | "ready" | "mismatch" | "match",
    ) => {
      await recordPlatform(system, [{ kind, value, observedAt: began, seenAt: seen } as never]);
      return readBrake(system);
    };
    await superuser`DELETE FROM platform_observations`;
    expect(await said("control_plane", "not_ready")).toEqual({ braked: true, why: "control_plane_outage" });
    expect(await said("ca_trust", "mismatch")).toEqual({ braked: true, why: "ca_mismatch" });
    await superuser`DELETE FROM platform_observations`;
    expect(await said("ca_trust", "match")).toEqual({ braked: false });
  });

  it("DRIFT-13 never holds back what needs security action", async () => {
    await heard(130, 5);
    const [node] = nodes.slice(5);
    if (!node) throw new Error("there are six");
    await superuser`UPDATE node_presence SET disconnected_at = now() WHERE node_id = ${node.id}`;
    await recordObservations(system, [
      {
        ...{ nodeId: node.id, kind: "instances", value: "two_or_more", observer: "control_plane" },
        observedAt: new Date(),
      },
    ]);
    expect(await readBrake(system)).toMatchObject({ braked: true });
    await classify();
    expect(await notified()).toEqual(["security_action_required"]);
  });
});
