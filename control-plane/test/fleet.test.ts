// The fleet over the real api: counts, reasons, the picture and its changes, filters and pages, and nobody else's nodes.

import { type FleetFilter, getFleet, getFleetPicture } from "@holdfast/contracts/endpoints/fleet";
import { listIncidents } from "@holdfast/contracts/endpoints/incidents";
import { changeNode, listNodes, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { applyPicture } from "@holdfast/contracts/public/fleet-picture";
import { LIVE_PATH, LiveMessage } from "@holdfast/contracts/public/live";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { classifyAll, RACK, seedFleet } from "../../testkit/api/fleet.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { createFleets } from "../src/fleet/view.ts";
import { openSignals } from "../src/mechanisms/signals.ts";

let api: TestApi;
let ours: TestOrg;
let theirs: TestOrg;
let superuser: Sql;
const SIZE = 200;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  ours = await createOrg(api, "ours");
  theirs = await createOrg(api, "theirs");
  await seedFleet(superuser, theirs.id, 3);
  await seedFleet(superuser, ours.id, SIZE, (number) => {
    if (Math.floor(number / RACK) === 2) return { silentSeconds: 600 };
    if (number % 50 === 1) return { finding: "disk_full", version: "1.3.2" };
    if (number === 10) return { status: "quarantined" };
    if (number === 11) return { status: "draining" };
    if (number === 12) return { clockSkewMs: 300_000, capabilities: ["os_users", "gpu"] };
    return {};
  });
});

const fleet = (query: FleetFilter = {}, org = ours) => api.operator(org.id)(getFleet, { query });
const picture = (query: FleetFilter & { since?: string } = {}, org = ours) =>
  api.operator(org.id)(getFleetPicture, { query });

/** All names that a listing leads to, page by page. */
async function listed(query: FleetFilter & { limit?: number }): Promise<string[]> {
  return (await listedAndCounted(query)).names;
}

async function listedAndCounted(query: FleetFilter & { limit?: number }) {
  const names: string[] = [];
  let cursor: string | undefined;
  let total: number;
  do {
    const page = await api.operator(ours.id)(listNodes, { query: { ...query, cursor } });
    total = page.total;
    names.push(...page.items.map(({ name }) => name));
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return { names, total };
}

describe("the fleet in numbers", () => {
  it("DRIFT-02 counts states, and says what those that are not fine share, since when, and what to do", async () => {
    const summary = await fleet();
    expect(summary).toMatchObject({
      total: SIZE,
      matching: SIZE,
      not_fine: 38,
      states: { silent: 32, troubled: 5, fenced: 1, draining: 1, joining: 0, fine: 161 },
      own_side: null,
    });
    expect(summary.troubles.map(({ code, count }) => [code, count])).toEqual([
      ["node_quarantined", 1],
      ["disk_full", 4],
      ["clock_skew", 1],
      ["heartbeat_stale", 32],
    ]);
    const [fenced, full, , silent] = summary.troubles;
    expect(fenced).toMatchObject({ severity: "P0", owner_id: "node_enrollment" });
    expect(silent).toMatchObject({ common: [{ attribute: "subnet", value: "10.0.2.0/24", count: 32 }] });
    const age = Date.parse(summary.at) - Date.parse(silent?.first_at ?? "");
    expect(age).toBeGreaterThan(590_000);
    expect(full).toMatchObject({ common: [{ attribute: "agent_version", value: "1.3.2", count: 4 }] });
    expect(full?.next_step).toMatch(/Free space/);
    expect(summary.versions).toEqual([
      { value: "1.4.0", count: SIZE - 4 },
      { value: "1.3.2", count: 4 },
    ]);
  });

  it("SEC-01 shows a tenant nothing but its own", async () => {
    const stranger = api.as(await tokenFor(api, theirs, "member"));
    expect((await stranger(getFleet, {})).total).toBe(3);
    const pictured = await stranger(getFleetPicture, { query: { since: (await picture()).version } });
    expect(pictured).toMatchObject({ whole: true, kind: [0, 0, 0] });
    expect((await stranger(listNodes, { query: { search: "sim-00100" } })).items).toEqual([]);
    expect((await stranger(listNodes, { query: { state: "present" } })).items).toHaveLength(3);
  });
});

describe("looking for nodes", () => {
  it.for<[FleetFilter, number]>([
    [{ state: "silent" }, 32],
    [{ state: "not_fine" }, 38],
    [{ state: "present" }, SIZE],
    [{ attention: "disk_full" }, 4],
    [{ attention: "heartbeat_stale" }, 32],
    [{ attention: "agent_down" }, 32],
    [{ version: "1.3.2" }, 4],
    [{ capability: "gpu" }, 1],
    [{ capability: "gpu,tpu" }, 1],
    [{ capability: "os_users,gpu", search: "sim-00012" }, 1],
    [{ block: "10.0.2.0/24" }, 32],
    [{ search: "SIM-0001" }, 10],
    [{ search: "10.0.3." }, 32],
    [{ search: "10.0.2.1", state: "silent" }, 11],
    [{ search: "no-such" }, 0],
  ])("DASH-01 finds the same nodes in table, picture and counts: %j", async ([filter, count]) => {
    const { names, total } = await listedAndCounted({ ...filter, limit: 17 });
    expect(names).toHaveLength(count);
    expect(total).toBe(count);
    expect(new Set(names).size).toBe(count);
    const shown = applyPicture([], await picture(filter));
    expect(shown.map(({ name }) => name)).toEqual(names.toSorted());
    expect((await fleet(filter)).matching).toBe(count);
  });

  it("DASH-01 DRIFT-04 lists the worst first, all of them, page by page", async () => {
    const ask = (cursor?: string) =>
      api.operator(ours.id)(listNodes, { query: { order: "worst", limit: 30, cursor } });
    const first = await ask();
    expect(first.items.slice(0, 6).map(({ attention }) => attention[0]?.severity)).toEqual([
      ...["P0", "P1", "P1", "P1", "P1", "P1"],
    ]);
    expect(first.items[0]).toMatchObject({ name: "sim-00010", attention: [{ code: "node_quarantined" }] });
    expect(first.items[6]).toMatchObject({
      ...{ connection: "stale", agent_status: "stale", cause_pending: false },
      layers: { management: "impaired", workload: "unknown", access: "unknown" },
      attention: [{ code: "heartbeat_stale", reason: "agent_down", severity: "P2", confidence: "low" }],
    });
    const names = first.items.map(({ name }) => name);
    for (let next = first.next_cursor; next !== null; ) {
      const page = await ask(next);
      names.push(...page.items.map(({ name }) => name));
      next = page.next_cursor;
    }
    expect(new Set(names).size).toBe(first.total);
    expect(names).toHaveLength(first.total);
  });

  it("DASH-01 a list shows a node that just went offline as such, with its cause still to come", async () => {
    const node = await enrollTestNode(api, ours.id, { hostname: "just-lost" });
    await sendHeartbeatFrom(node);
    await classifyAll(superuser);
    const [before] = (await api.operator(ours.id)(listNodes, { query: { name: "just-lost" } })).items;
    expect(before).toMatchObject({
      ...{ connection: "online", agent_status: "healthy", cause_pending: false, attention: [] },
      layers: { management: "working" },
    });
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${node.id}`;
    const shown = async () => (await api.operator(ours.id)(listNodes, { query: { name: "just-lost" } })).items[0];
    expect(await shown()).toMatchObject({
      ...{ connection: "stale", agent_status: "stale", cause_pending: true, attention: [] },
      layers: { management: "unknown" },
    });
    await classifyAll(superuser);
    expect(await shown()).toMatchObject({ cause_pending: false, attention: [{ code: "heartbeat_stale" }] });
    await sendHeartbeatFrom(node);
    expect(await shown()).toMatchObject({
      ...{ connection: "online", cause_pending: true, attention: [] },
      layers: { management: "unknown" },
    });
    const retire = { params: { node_id: node.id }, body: { change: "retire" as const } };
    await api.operator(ours.id)(changeNode, retire);
  });

  it("DASH-01 finds a node by the beginning of its id, and pages stay in place while nodes join", async () => {
    const [first] = (await api.operator(ours.id)(listNodes, { query: { name: "sim-00042" } })).items;
    expect(await listed({ search: first?.id ?? "" })).toEqual(["sim-00042"]);
    const page = await api.operator(ours.id)(listNodes, { query: { state: "fine", limit: 5 } });
    const next = async () =>
      (
        await api.operator(ours.id)(listNodes, {
          query: { state: "fine", limit: 5, cursor: page.next_cursor ?? "" },
        })
      ).items.map(({ name }) => name);
    const before = await next();
    await sendHeartbeatFrom(await enrollTestNode(api, ours.id, { hostname: "newcomer" }));
    await expect.poll(() => listed({ search: "newcomer" })).toEqual(["newcomer"]);
    expect(await next()).toEqual(before);
  });

  it("DASH-01 finds what retired only among the retired", async () => {
    const node = await enrollTestNode(api, ours.id, { hostname: "old-one" });
    await api.operator(ours.id)(changeNode, { params: { node_id: node.id }, body: { change: "retire" } });
    await expect.poll(() => listed({ search: "old-o" })).toEqual([]);
    const retired = (query: object) =>
      api.operator(ours.id)(listNodes, { query: { state: "retired", search: "old-o", ...query } });
    const found = await retired({});
    expect(found).toMatchObject({ items: [{ name: "old-one", status: "retired" }], total: 1 });
    expect(await retired({ state: undefined, status: "retired" })).toEqual(found);
    expect(await retired({ capability: "os_users" })).toMatchObject({ items: [], total: 0 });
    const names = async (query: object) => (await retired({ search: undefined, name: "old-one", ...query })).items;
    expect(await names({ state: "present" })).toEqual([]);
    expect(await names({ state: undefined })).toHaveLength(1);
  });
});

/** Of what an open page of a member hears, from now on. */
async function topicsFor(org: TestOrg, email: string): Promise<string[]> {
  const member = await addMember(api, org, email, "member");
  const url = `${api.url.replace("http", "ws")}${LIVE_PATH}?org_id=${org.id}`;
  const socket = new WebSocket(url, { headers: { cookie: member.cookie }, origin: api.url });
  atEnd(() => socket.terminate());
  const heard: string[] = [];
  socket.on("message", (data) => heard.push(LiveMessage.parse(JSON.parse(String(data))).topic));
  await new Promise((resolve) => socket.once("open", resolve));
  return heard;
}

describe("the picture", () => {
  it("DASH-04 tells later only what changed, and open pages hear that something did", async () => {
    const heard = await topicsFor(ours, "watcher@example.com");

    const first = await picture();
    expect(first.whole).toBe(true);
    const [node] = (await api.operator(ours.id)(listNodes, { query: { name: "sim-00020" } })).items;
    const params = { node_id: node?.id ?? "" };
    await superuser`UPDATE node_presence SET heartbeat_at = now()
      WHERE org_id = ${ours.id} AND heartbeat_at > now() - interval '1 minute'`;
    expect(await picture({ since: first.version })).toMatchObject({
      whole: false,
      kind: [],
      version: first.version,
    });

    heard.length = 0;
    await api.operator(ours.id)(changeNode, { params, body: { change: "fence" } });
    await classifyAll(superuser);
    await expect.poll(() => heard).toContain("fleet");
    // The state at once; its cause follows.
    await expect
      .poll(async () => (await picture({ since: first.version })).kinds)
      .toMatchObject([{ state: "fenced", reason: "node_quarantined" }]);
    const second = await picture({ since: first.version });
    expect(second).toMatchObject({ whole: false, kinds: [{ state: "fenced", reason: "node_quarantined" }] });
    await api.operator(ours.id)(updateNode, { params, body: { name: "renamed" } });
    await expect.poll(async () => (await picture({ since: second.version })).gone).toEqual(["sim-00020"]);
    const third = await picture({ since: second.version });
    const whole = applyPicture([], await picture());
    expect(applyPicture(applyPicture(applyPicture([], first), second), third)).toEqual(whole);
    expect((await picture({ since: "elsewhere.1" })).whole).toBe(true);
  });

  it("DASH-04 shows a change at once, also after a look during which the machine stood still", async () => {
    const org = await createOrg(api, "stalled");
    await seedFleet(superuser, org.id, 3);
    const { app, system } = openRoles(api.database);
    const signals = await openSignals(system, quiet);
    let clock = 0;
    const fleets = createFleets({ app, signals, log: quiet, staleAfterSeconds: () => 120, now: () => clock });
    atEnd(async () => {
      await fleets.stop();
      await signals.stop();
    });
    await fleets.current(org.id);
    clock += 5_000;
    const look = fleets.current(org.id);
    clock += 10_000;
    await look;
    const [changed] = await superuser<{ id: string }[]>`
      UPDATE nodes SET status = 'draining' WHERE org_id = ${org.id} AND name = 'sim-00002' RETURNING id`;
    signals.publish("node_standing", [changed?.id ?? ""]);
    const { nodes } = await fleets.current(org.id);
    expect(nodes.map(({ state }) => state)).toEqual(["fine", "draining", "fine"]);
  });

  it("DASH-04 takes few bytes for a node", async () => {
    expect(JSON.stringify(await picture()).length / SIZE).toBeLessThan(25);
  });

  it("DRIFT-04 shows the stored suspicion of the control plane, and tells open pages when it begins and ends", async () => {
    const dark = await createOrg(api, "dark");
    await seedFleet(superuser, dark.id, 400);
    expect((await fleet({}, dark)).own_side).toBeNull();
    await superuser`
      UPDATE node_presence SET heartbeat_at = now() - interval '150 seconds' WHERE org_id = ${dark.id}`;
    await classifyAll(superuser);
    const ownSide = async () => (await fleet({}, dark)).own_side;
    await expect
      .poll(async () => (await ownSide())?.message)
      .toMatch(/suspected, not the nodes\. 400 of your nodes/);
    const { items } = await api.operator(dark.id)(listIncidents, { query: { state: "open", limit: 200 } });
    const suspicion = items.find(({ shared }) => shared?.suspected);
    const shown = await ownSide();
    expect(shown).toMatchObject({ incident_id: suspicion?.id, message: suspicion?.shared?.sentence });
    expect(shown?.next_step).toContain(`the address that agents connect to, ${api.nodeUrl}:`);
    // No node changes any more: only the incident does.
    const heard = await topicsFor(dark, "night@example.com");
    await superuser`UPDATE incidents SET closed_at = now() WHERE id = ${suspicion?.id ?? ""}`;
    await expect.poll(() => heard).toContain("fleet");
    expect(await ownSide()).toBeNull();
  });
});
