import {
  type FleetFilter,
  type FleetState,
  fleetStates,
  notFineStates,
} from "@holdfast/contracts/endpoints/fleet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { OrgIncident } from "../drift/common-cause/of-organization.ts";
import type { CurrentVerdict } from "../drift/verdicts/current.ts";
import type { StoredCause } from "../drift/verdicts/stored.ts";
import { keepHistory } from "./history.ts";
import { blockOf, type FleetNode, toFleetNode } from "./node.ts";
import { cursorAt, placeIn, worstFirst } from "./order.ts";
import type { FleetRow } from "./read.ts";
import { summarize as summarizeAt } from "./summary.ts";

const at = new Date("2026-03-01T03:00:00.000Z");
const nodeApiUrl = "https://nodes.example.com:18999";
const summarizeAll = (nodes: readonly FleetNode[], filter: FleetFilter, incidents: readonly OrgIncident[]) =>
  summarizeAt(nodes, filter, { at, incidents, nodeApiUrl });
const summarize = (nodes: readonly FleetNode[], filter: FleetFilter) => summarizeAll(nodes, filter, []);

function cause(code: string, over: Partial<StoredCause> = {}): StoredCause {
  return {
    ...{ reason: code, spokenAs: code, signal: null, layer: "management", confidence: "high", severity: "P1" },
    ...{ userState: "temporary", owner: "node_runtime", alsoInvolves: [], nextAction: "wait", symptoms: [] },
    ...{ budget: { detect: 300, repair: 3_600 }, changedBy: "a heartbeat", nextStep: undefined, evidence: [] },
    since: new Date(at.getTime() - 60_000).toISOString(),
    ...over,
  };
}

function made(number: number, over: Partial<FleetNode> = {}): FleetNode {
  const name = `n${String(number).padStart(4, "0")}`;
  const state = over.state ?? "fine";
  return {
    id: name,
    name,
    status: "active",
    state,
    reason: over.reason ?? null,
    causes: over.reason ? [cause(over.reason)] : [],
    severity: over.reason ? "P1" : null,
    version: "1",
    block: "10.0.0.0/24",
    since: null,
    report: undefined,
    ...over,
  };
}

function incident(over: Partial<OrgIncident> = {}): OrgIncident {
  return {
    ...{ id: "i1", reason: "disk_full", attribute: "agent_version", value: "1", began_at: at },
    ...{ outage_began_at: null, outage_ended_at: null, node_ids: new Set(["n0001", "n0002"]) },
    ...over,
  };
}

describe("common causes on the fleet's pages", () => {
  const suspicion = incident({
    id: "i2",
    reason: "control_plane_unreachable",
    attribute: "control_plane",
    value: "",
  });
  const everywhere = incident({
    ...{ id: "i3", attribute: "fleet", value: "" },
    node_ids: new Set(["n0001", "n0002", "n0003"]),
  });
  const ownSide = (...incidents: OrgIncident[]) => summarizeAll([], {}, incidents).own_side;

  it("DRIFT-04 name the control plane first, then what the whole fleet has", () => {
    expect(ownSide()).toBeNull();
    expect(ownSide(incident())).toBeNull();
    expect(ownSide(incident(), everywhere, suspicion)).toEqual({
      incident_id: "i2",
      message:
        "Most nodes of this installation went offline at the same time. The control plane or the network in front of it is suspected, not the nodes. 2 of your nodes are affected.",
      next_step: expect.stringContaining(`the address that agents connect to, ${nodeApiUrl}:`),
    });
    expect(ownSide(everywhere)).toMatchObject({
      incident_id: "i3",
      message: expect.stringMatching(/^At least half of the nodes/),
      next_step: expect.stringContaining("`holdfast incident show i3`"),
    });
    const wide = { ...everywhere, id: "i4", reason: "clock_skew", node_ids: new Set(["n1", "n2", "n3", "n4"]) };
    expect(ownSide(everywhere, wide)).toMatchObject({
      incident_id: "i4",
      next_step: expect.stringContaining("`timedatectl`"),
    });
  });

  it("DRIFT-04 stand with the problem that they explain, the one with the most nodes first", () => {
    const nodes = [1, 2, 3, 4].map((number) =>
      made(number, { causes: [cause("disk_full"), ...(number === 1 ? [cause("clock_skew")] : [])] }),
    );
    const small = incident({ id: "i5", attribute: "subnet", value: "10.0.0.0/24", node_ids: new Set(["n0003"]) });
    const commonIn = (filter: FleetFilter) =>
      Object.fromEntries(
        summarizeAll(nodes, filter, [small, incident(), suspicion, everywhere]).troubles.map(
          ({ code, common }) => [
            code,
            common.map(({ incident_id, attribute, value, count }) => [incident_id, attribute, value, count]),
          ],
        ),
      );
    const version = ["i1", "agent_version", "1"];
    expect(commonIn({})).toEqual({
      disk_full: [
        [...version, 2],
        ["i5", "subnet", "10.0.0.0/24", 1],
      ],
      clock_skew: [],
    });
    expect(commonIn({ search: "n0002" })).toEqual({ disk_full: [[...version, 1]] });
  });
});

describe("the fleet in numbers", () => {
  const node = fc
    .record({
      number: fc.integer({ min: 0, max: 5_000 }),
      state: fc.constantFrom(...fleetStates),
      code: fc.constantFrom("disk_full", "clock_skew", "brand_new"),
      version: fc.constantFrom("1", "2"),
    })
    .map(({ number, state, code, version }) =>
      made(number, {
        state,
        version,
        ...(notFineStates.includes(state) ? { reason: code, causes: [cause(code)] } : {}),
      }),
    );

  it("DASH-01 adds up", () => {
    fc.assert(
      fc.property(fc.uniqueArray(node, { selector: ({ id }) => id, maxLength: 80 }), (nodes) => {
        const summary = summarize(nodes, {});
        expect(Object.values(summary.states).reduce((sum, count) => sum + count, 0)).toBe(nodes.length);
        expect(summary.not_fine).toBe(nodes.filter(({ state }) => notFineStates.includes(state)).length);
        expect(summary.troubles.reduce((sum, { count }) => sum + count, 0)).toBe(summary.not_fine);
      }),
    );
  });
});

describe("a node in the fleet", () => {
  const ago = (seconds: number) => new Date(at.getTime() - seconds * 1000);
  const row: FleetRow = {
    ...{ id: "n", name: "n", status: "active", status_changed_at: ago(9_000), revoked_at: null },
    ...{ heartbeat_at: ago(5), instance_id: "i", disconnected_at: null, classified_at: ago(1), read_at: at },
  };
  const stored = (causes: StoredCause[], reporting: boolean): Omit<CurrentVerdict, "pending"> => ({
    ...{ causes, reporting, userState: "normal" },
    layers: { management: "working", workload: "unknown", access: "unknown" },
  });
  const moment = { now: at, staleAfterSeconds: 120 };
  const seen = (over: Partial<FleetRow>, verdict: Omit<CurrentVerdict, "pending"> | undefined) =>
    toFleetNode({ ...row, ...over }, { report: undefined, verdict }, moment);
  const silence = cause("heartbeat_stale", { signal: "node_agent_heartbeat_stale", severity: "P2" });

  it.each<[string, Partial<FleetRow>, Omit<CurrentVerdict, "pending"> | undefined, string, string | null]>([
    ["healthy", {}, stored([], true), "fine", null],
    ["never classified", {}, undefined, "fine", null],
    ["offline, not classified since", { heartbeat_at: ago(121) }, stored([], true), "silent", null],
    ["offline, classified", { heartbeat_at: ago(121) }, stored([silence], false), "silent", "heartbeat_stale"],
    [
      "offline for a known cause",
      { disconnected_at: ago(11) },
      stored([cause("disk_full")], false),
      "silent",
      "disk_full",
    ],
    ["back, not classified since", {}, stored([silence], false), "fine", null],
    ["back, with another cause", {}, stored([cause("disk_full"), silence], false), "troubled", "disk_full"],
    ["degraded", {}, stored([cause("link_slow")], true), "troubled", "link_slow"],
    ["never heard", { heartbeat_at: null }, stored([cause("never_heard")], false), "silent", "never_heard"],
    ["enrolling", { heartbeat_at: null, status: "enrolling" }, stored([], false), "joining", null],
    ["draining", { status: "draining" }, stored([], true), "draining", null],
    [
      "quarantined",
      { status: "quarantined" },
      stored([cause("node_quarantined")], true),
      "fenced",
      "node_quarantined",
    ],
  ])("DRIFT-02 DASH-01 that is %s", (_, over, verdict, state, reason) => {
    expect(seen(over, verdict)).toMatchObject({ state, reason });
  });

  it("DRIFT-02 is as old as its cause, or as its last sign of life before there is one", () => {
    const since = ago(777).toISOString();
    expect(seen({}, stored([cause("disk_full", { since })], true))).toMatchObject({ since: ago(777).getTime() });
    const lost = seen({ disconnected_at: ago(30) }, stored([], true));
    expect(lost).toMatchObject({ since: ago(30).getTime() });
    expect(seen({}, stored([], true)).since).toBeNull();
  });

  it("DRIFT-02 is counted as pending only while it is offline without a cause", () => {
    const all = [seen({ heartbeat_at: ago(121) }, stored([], true)), seen({}, stored([], true)), made(1)];
    expect(summarize(all, {})).toMatchObject({ pending: 1, troubles: [] });
  });

  it("DRIFT-04 problems come by severity, then by how many have them, with the worst degree of each", () => {
    const nodes = [
      made(1, { causes: [cause("link_slow", { severity: "P2" })] }),
      made(2, { causes: [cause("link_slow", { severity: "P2" }), cause("disk_full")] }),
      made(3, { causes: [cause("clock_skew"), cause("link_slow", { severity: "P2" })] }),
      made(4, { causes: [cause("clock_skew", { userState: "recovering" })] }),
      made(5, { causes: [cause("node_quarantined", { severity: "P0", owner: "node_enrollment" })] }),
      made(6, { causes: [cause("node_quarantined")] }),
    ];
    const { troubles } = summarize(nodes, {});
    expect(troubles.map(({ code, severity, count }) => `${severity} ${code} ${count}`)).toEqual([
      ...["P0 node_quarantined 2", "P1 clock_skew 2", "P1 disk_full 1", "P2 link_slow 3"],
    ]);
    expect(troubles[0]).toMatchObject({ owner_id: "node_enrollment", user_state: "temporary" });
  });
});

describe("nodes, the worst first", () => {
  const endpoint = { name: "listNodes" } as Parameters<typeof cursorAt>[0];
  const ranked = fc
    .record({
      number: fc.integer({ min: 0, max: 999 }),
      severity: fc.constantFrom("P0", "P1", "P2", null),
      state: fc.constantFrom<FleetState>("silent", "troubled", "fine"),
      since: fc.option(fc.integer({ min: 1, max: 5 })),
    })
    .map(({ number, ...over }) => made(number, over as Partial<FleetNode>));
  const fleet = fc.uniqueArray(ranked, { selector: ({ id }) => id, maxLength: 40 });
  const rank = ({ severity, state }: FleetNode) =>
    ["P0", "P1", "P2", null].indexOf(severity ?? (state === "silent" ? "P2" : null));

  it("DRIFT-04 are in the order of severity, then of how long it lasts", () => {
    fc.assert(
      fc.property(fleet, (nodes) => {
        const sorted = worstFirst(nodes, undefined);
        expect(new Set(sorted)).toEqual(new Set(nodes));
        sorted.slice(1).forEach((node, index) => {
          const before = sorted[index] as FleetNode;
          expect(rank(before)).toBeLessThanOrEqual(rank(node));
          if (rank(before) === rank(node) && rank(node) < 3 && node.since !== null && before.since !== null) {
            expect(before.since).toBeLessThanOrEqual(node.since);
          }
        });
      }),
    );
  });

  it("DASH-01 are all found page by page, also when the last of a page has left", () => {
    fc.assert(
      fc.property(fleet, fc.integer({ min: 1, max: 7 }), (nodes, limit) => {
        const found: FleetNode[] = [];
        let cursor: string | undefined;
        let left = nodes;
        do {
          const page = worstFirst(left, placeIn(endpoint, cursor)).slice(0, limit);
          found.push(...page);
          const last = page.at(-1);
          cursor = last && cursorAt(endpoint, last);
          left = left.filter((node) => node !== last);
        } while (cursor !== undefined);
        expect(found).toEqual(worstFirst(nodes, undefined));
      }),
    );
  });

  it("SEC-03 have cursors of their own", () => {
    const text = (words: string) => Buffer.from(words).toString("base64url");
    for (const cursor of [
      "",
      "x",
      text("listNodes n0001"),
      text("listTasks worst 1 1 a"),
      text("listNodes worst a 1 a"),
    ]) {
      expect(() => placeIn(endpoint, cursor)).toThrow();
    }
  });
});

describe("the history of a fleet", () => {
  it("DASH-04 returns exactly the changes since a known version", () => {
    const step = fc.dictionary(
      fc.constantFrom("a", "b", "c", "d", "e"),
      fc.constantFrom<FleetState>("fine", "draining"),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (steps) => {
        const history = keepHistory();
        const seen = steps.map((states) => {
          const nodes = Object.entries(states).map(([name, state]) => ({ ...made(0), id: name, name, state }));
          history.record(nodes);
          return { version: history.version(), states: new Map(Object.entries(states)) };
        });
        const last = seen.at(-1)?.states;
        for (const { version, states } of seen) {
          const changes = history.since(version);
          for (const name of changes?.gone ?? []) states.delete(name);
          for (const { name, state } of changes?.changed ?? []) states.set(name, state);
          expect(states).toEqual(last);
        }
        expect(history.since("other.1")).toBeUndefined();
      }),
    );
  });
});

describe("the block of an address", () => {
  it.each([
    ["10.0.5.17", "10.0.5.0/24"],
    ["2001:db8:0:7::1", "2001:db8:0:7::/64"],
    ["::1", "0:0:0:0::/64"],
    ["2001:DB8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["host.example.com", null],
    ["fe80::1%eth0", null],
    ["", null],
  ])("DASH-01 %s is in %s", (address, block) => {
    expect(blockOf(address)).toBe(block);
  });
});
