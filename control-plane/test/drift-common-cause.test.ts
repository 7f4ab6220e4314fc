// Incidents of nodes that have one cause, as they are stored and as each organization sees them.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { getIncident, listIncidents, listPlatformIncidents } from "@holdfast/contracts/endpoints/incidents";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { relateIncidents } from "../src/drift/common-cause/relate.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { removeOldIncidents } from "../src/drift/incidents/remove-old.ts";
import { defaultCommonCausePolicy as limits, defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";

let api: TestApi;
let ours: TestOrg;
let theirs: TestOrg;
let system: Sql;
let superuser: Sql;

beforeEach(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  ours = await createOrg(api, "ours");
  theirs = await createOrg(api, "theirs");
});

/** Nodes that sent a heartbeat just now. */
async function nodesOf(org: TestOrg, count: number, agentVersion: string): Promise<string[]> {
  const ids = Array.from({ length: count }, () => uuidv7());
  const attributes = JSON.stringify({ agent_version: agentVersion, profile: "default version 1" });
  await superuser`
    INSERT INTO nodes (id, org_id, name, status)
    SELECT id, ${org.id}, ${org.slug} || '-' || id, 'active' FROM unnest(${ids}::uuid[]) AS id`;
  await superuser`
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat, attributes)
    SELECT id, ${org.id}, now(), id, 'boot', 0, '{}', ${attributes}::text::json FROM unnest(${ids}::uuid[]) AS id`;
  return ids;
}

const fill = (ids: readonly string[], value: "present" | "absent" = "present") =>
  recordObservations(
    system,
    ids.map((nodeId) => ({
      ...{ nodeId, kind: "finding", key: "disk_full", value, observer: "agent", observedAt: new Date() },
    })),
  );
const silence = (ids: readonly string[]) => superuser`
  UPDATE node_presence SET heartbeat_at = now() - interval '150 seconds' WHERE node_id = ANY(${ids as string[]}::uuid[])`;
async function look(): Promise<string[]> {
  await findUnnoticed(system, policy);
  await classifyWhatIsDue(system, policy);
  return relateIncidents(system, limits);
}

type Stored = { reason: string; attribute: string; value: string; nodes: number; open: boolean; outage: boolean };
const platformIncidents = () => superuser<Stored[]>`
  SELECT reason, attribute, value, nodes, closed_at IS NULL AS open, outage_began_at IS NOT NULL AS outage
  FROM platform_incidents ORDER BY id`;
const everything = async () =>
  JSON.stringify([
    await superuser`SELECT * FROM platform_incidents ORDER BY id`,
    await superuser`SELECT * FROM incidents ORDER BY id`,
  ]);

describe("nodes of two organizations with one cause", () => {
  it("DRIFT-04 DRIFT-10 are one incident of the platform, and one of its own in each organization", async () => {
    const mine = await nodesOf(ours, 4, "2.0");
    const other = await nodesOf(theirs, 3, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill([...mine, ...other]);
    expect((await look()).toSorted()).toEqual([...mine, ...other].toSorted());
    expect(await platformIncidents()).toEqual([
      { reason: "disk_full", attribute: "agent_version", value: "2.0", nodes: 7, open: true, outage: false },
    ]);

    const seen = async (org: TestOrg) => {
      const { items } = await api.operator(org.id)(listIncidents, {});
      const [common, another] = items.filter(({ shared }) => shared !== null);
      expect(another).toBeUndefined();
      const detail = await api.operator(org.id)(getIncident, { params: { incident_id: common?.id ?? "" } });
      return { items, common, detail };
    };
    const [a, b] = [await seen(ours), await seen(theirs)];
    expect(a.common).toMatchObject({
      ...{ node_id: null, node_count: 4, state: "open", reason: "disk_full", part_of: null },
      shared: { attribute: "agent_version", value: "2.0", suspected: false },
    });
    expect(a.common?.shared?.sentence).toMatch(
      /^4 of your nodes with agent version 2\.0 have the same problem since \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/,
    );
    expect(a.detail.nodes.map(({ id }) => id).toSorted()).toEqual(mine.toSorted());
    expect(a.items.filter(({ part_of }) => part_of === a.common?.id)).toHaveLength(4);
    expect(b.common).toMatchObject({ node_count: 3, reason: "disk_full" });

    // Nothing that one of them sees is the other's, not even the id of what they have in common.
    const [{ id: platformId = "" } = {}] = await superuser<{ id: string }[]>`SELECT id FROM platform_incidents`;
    const texts = [JSON.stringify(a), JSON.stringify(b)];
    const ids = (one: typeof a) => one.items.flatMap(({ id, node_id }) => [id, ...(node_id ? [node_id] : [])]);
    for (const id of [...ids(b), platformId, theirs.id]) expect(texts[0]).not.toContain(id);
    for (const id of [...ids(a), platformId, ours.id]) expect(texts[1]).not.toContain(id);
    const foreign = api.operator(ours.id)(getIncident, { params: { incident_id: b.common?.id ?? "" } });
    await expect(foreign).rejects.toMatchObject({ envelope: { code: "not_found" } });

    const explained = await api.operator(ours.id)(explainNode, { params: { node_id: mine[0] ?? "" } });
    expect(explained.part_of).toMatchObject({
      ...{ incident_id: a.common?.id, reason: "disk_full", title: "Disk full" },
      shared: { sentence: a.common?.shared?.sentence },
    });
    const { items: platform } = await api.operator()(listPlatformIncidents, {});
    expect(platform).toMatchObject([{ node_count: 7, organization_count: 2, state: "open" }]);
  });

  it("DRIFT-04 are separate incidents while they are few, and are compared whenever one changes", async () => {
    const mine = await nodesOf(ours, 4, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill(mine.slice(0, 2));
    expect(await look()).toEqual([]);
    expect(await platformIncidents()).toEqual([]);
    await fill(mine.slice(2));
    expect(await look()).toHaveLength(4);
    const changed = await superuser`SELECT FROM incidents WHERE NOT compared`;
    expect(changed).toHaveLength(0);
    await fill(mine.slice(0, 2), "absent");
    await look();
    expect(await platformIncidents(), "two are left").toMatchObject([{ open: false, nodes: 4 }]);
    const { items } = await api.operator(ours.id)(listIncidents, {});
    expect(items.filter(({ shared }) => shared)).toMatchObject([{ state: "closed", node_count: 2 }]);
    expect(items.filter(({ state }) => state === "open").map(({ part_of }) => part_of)).toEqual([null, null]);
    await fill(mine.slice(0, 2));
    await look();
    expect(await platformIncidents(), "another one begins").toMatchObject([{ open: false }, { open: true }]);
  });

  it("DRIFT-04 in one organization that recovers is over there, and goes on in the other", async () => {
    const mine = await nodesOf(ours, 2, "2.0");
    const other = await nodesOf(theirs, 4, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill([...mine, ...other]);
    await look();
    await fill(mine, "absent");
    await look();
    const stateIn = async (org: TestOrg) =>
      (await api.operator(org.id)(listIncidents, {})).items.find(({ shared }) => shared)?.state;
    expect([await stateIn(ours), await stateIn(theirs)]).toEqual(["closed", "open"]);
    await fill(mine);
    await look();
    expect(await stateIn(ours), "the same one again").toBe("open");
    expect(await platformIncidents()).toHaveLength(1);
  });
});

describe("comparing", () => {
  it("DRIFT-04 again, twice at once, or after a crash in the middle changes nothing further", async () => {
    const mine = await nodesOf(ours, 5, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill(mine);
    await findUnnoticed(system, policy);
    await classifyWhatIsDue(system, policy);
    const crash = system.begin(async (tx) => {
      await relateIncidents(
        { begin: (work: (inner: typeof tx) => unknown) => work(tx) } as unknown as Sql,
        limits,
      );
      throw new Error("killed");
    });
    await expect(crash).rejects.toThrow("killed");
    expect(await platformIncidents()).toEqual([]);
    const changed = await Promise.all([relateIncidents(system, limits), relateIncidents(system, limits)]);
    expect(changed.flat()).toHaveLength(5);
    const before = await everything();
    expect(await relateIncidents(system, limits)).toEqual([]);
    await superuser`UPDATE incidents SET compared = false WHERE node_id IS NOT NULL`;
    expect(await relateIncidents(system, limits)).toEqual([]);
    expect(await everything()).toBe(before);
  });

  it("DRIFT-04 leaves out an incident that is being written, and looks at it the next time", async () => {
    const mine = await nodesOf(ours, 4, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill(mine);
    await findUnnoticed(system, policy);
    await classifyWhatIsDue(system, policy);
    await superuser.begin(async (tx) => {
      await tx`SELECT FROM incidents WHERE node_id = ${mine[0] ?? ""} FOR UPDATE`;
      expect(await relateIncidents(system, limits)).toHaveLength(3);
    });
    expect(await relateIncidents(system, limits)).toEqual([mine[0]]);
  });

  it("DRIFT-04 leaves out nodes that operators took out of service, and has nothing left to do", async () => {
    const mine = await nodesOf(ours, 4, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill(mine);
    await look();
    await superuser`UPDATE nodes SET status = 'quarantined', status_changed_at = now() WHERE id = ${mine[0] ?? ""}`;
    await superuser`UPDATE node_verdicts SET review_at = now()`;
    await look();
    expect(await platformIncidents()).toMatchObject([{ nodes: 3 }]);
    const own = await api.operator(ours.id)(listIncidents, { query: { node_id: mine[0] ?? "" } });
    expect(own.items).toMatchObject([{ state: "open", part_of: null }]);
    expect(await superuser`SELECT FROM incidents WHERE NOT compared`).toHaveLength(0);
  });

  it("DRIFT-04 keeps a common cause as long as its organizations' incidents", async () => {
    const mine = await nodesOf(ours, 3, "2.0");
    await nodesOf(ours, 9, "1.0");
    await fill(mine);
    await look();
    await fill(mine, "absent");
    await look();
    await superuser`UPDATE platform_incidents SET closed_at = now() - interval '91 days'`;
    await removeOldIncidents(system, { days: 90 });
    expect(await platformIncidents()).toHaveLength(1);
    await superuser`UPDATE incidents SET closed_at = now() - interval '91 days'`;
    await removeOldIncidents(system, { days: 90 });
    expect(await platformIncidents()).toEqual([]);
  });
});

describe("the control plane", () => {
  it("DRIFT-04 is suspected when most of the fleet goes offline at once, and nodes are its symptoms", async () => {
    const mine = await nodesOf(ours, 6, "1.0");
    await nodesOf(theirs, 3, "1.0");
    await silence(mine);
    await look();
    expect(await platformIncidents()).toEqual([
      {
        ...{ reason: "control_plane_unreachable", attribute: "control_plane", value: "", nodes: 6, open: true },
        outage: false,
      },
    ]);
    const { items } = await api.operator(ours.id)(listIncidents, {});
    const common = items.find(({ shared }) => shared);
    expect(common).toMatchObject({
      ...{ title: "Control plane suspected", owner_id: "control_plane", next_action: "fix_control_plane" },
      shared: { attribute: "control_plane", value: null, suspected: true },
    });
    expect(common?.shared?.sentence).toContain("6 of your nodes are affected.");
    expect(items.filter(({ part_of }) => part_of === common?.id)).toHaveLength(6);
    expect((await api.operator(theirs.id)(listIncidents, {})).items).toEqual([]);
  });

  it("DRIFT-04 is suspected after its own outage, until the nodes should be back", async () => {
    const [one = ""] = await nodesOf(ours, 1, "1.0");
    await nodesOf(ours, 9, "1.0");
    await silence([one]);
    await superuser`
      INSERT INTO control_plane_outages VALUES ('api', now() - interval '130 seconds', now() - interval '20 seconds')`;
    await look();
    expect(await platformIncidents()).toMatchObject([{ attribute: "control_plane", open: true, outage: true }]);
    const { part_of } = await api.operator(ours.id)(explainNode, { params: { node_id: one } });
    expect(part_of?.shared.sentence).toMatch(
      /^The control plane was down from .* to .*1 of your nodes is affected\.$/,
    );
    await superuser`UPDATE control_plane_outages SET began_at = now() - interval '300 seconds', ended_at = now() - interval '181 seconds'`;
    expect(await relateIncidents(system, limits), "time alone ends it").toEqual([one]);
    expect(await platformIncidents()).toMatchObject([{ open: false }]);
  });
});

describe("what nodes may share", () => {
  it("DRIFT-04 is stored with heartbeats and certificates", async () => {
    const node = await enrollTestNode(api, ours.id);
    await sendHeartbeatFrom(node);
    const [row] = await superuser<{ attributes: Record<string, string>; issuer: string }[]>`
      SELECT p.attributes, c.issuer FROM node_presence p JOIN node_certificates c USING (node_id)
      WHERE p.node_id = ${node.id}`;
    expect(row?.attributes).toEqual({
      ...{ agent_version: "0.1.0", profile: "default version 1", ingress: "direct connection" },
    });
    expect(row?.issuer).toMatch(/^[0-9a-f]{64}$/);
  });
});
