import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultCommonCausePolicy as policy } from "../policy.ts";
import type { Attributes } from "./attributes.ts";
import {
  type CommonCause,
  findCommonCauses,
  type Known,
  keyOf,
  type OpenCause,
  type RelatedNode,
} from "./find.ts";

const NOW = Date.parse("2026-03-01T14:02:00Z");
const SECOND = 1_000;
const nothing: Known = { open: [], outages: [], policy, now: NOW };

let made = 0;
const node = (reason: string | null, attributes: Attributes, secondsAgo = 60): RelatedNode => {
  made += 1;
  return { id: `n${String(made).padStart(4, "0")}`, reason, since: NOW - secondsAgo * SECOND, attributes };
};
const many = (count: number, ...like: Parameters<typeof node>) =>
  Array.from({ length: count }, () => node(...like));
const named = (causes: readonly CommonCause[]) =>
  causes.map(({ reason, attribute, value, nodes }) => [reason, attribute, value, nodes.length]);

const old = { agent_version: "1.0" };
const next = { agent_version: "2.0" };

describe("a common cause", () => {
  it("DRIFT-04 is named by what its nodes share and the others do not", () => {
    const nodes = [...many(4, "disk_full", next), ...many(10, null, old)];
    expect(named(findCommonCauses(nodes, nothing))).toEqual([["disk_full", "agent_version", "2.0", 4]]);
  });

  it.for([
    [2, 0, false],
    [3, 0, true],
    [3, 3, true],
    [3, 4, false],
    [4, 4, true],
  ] as const)("DRIFT-04 of %i affected and %i healthy nodes that share it: %s", ([bad, good, expected]) => {
    const nodes = [...many(bad, "disk_full", next), ...many(good, null, next), ...many(20, null, old)];
    expect(findCommonCauses(nodes, nothing)).toHaveLength(expected ? 1 : 0);
  });

  it.for([
    [300, 1],
    [301, 0],
  ] as const)("DRIFT-04 began within %i s: %i", ([apart, expected]) => {
    const nodes = [
      ...many(2, "disk_full", next, 1000),
      ...many(1, "disk_full", next, 1000 - apart),
      ...many(9, null, old),
    ];
    expect(findCommonCauses(nodes, nothing)).toHaveLength(expected);
  });

  it("DRIFT-04 is not what every node of the fleet shares, until half of the fleet is affected", () => {
    const few = [...many(4, "disk_full", old), ...many(5, null, old)];
    expect(findCommonCauses(few, nothing)).toEqual([]);
    const most = [...many(5, "disk_full", old), ...many(5, null, old)];
    expect(named(findCommonCauses(most, nothing))).toEqual([["disk_full", "fleet", "", 5]]);
  });

  it("DRIFT-04 prefers what covers all, and of that what the fewest others share", () => {
    const subnet = { ...next, subnet: "10.0.1.0/24" };
    const nodes = [...many(4, "disk_full", subnet), ...many(2, null, next), ...many(9, null, old)];
    expect(named(findCommonCauses(nodes, nothing))).toEqual([["disk_full", "subnet", "10.0.1.0/24", 4]]);
    const wider = [...nodes, ...many(3, "disk_full", { ...next, subnet: "10.0.2.0/24" })];
    expect(named(findCommonCauses(wider, nothing))).toEqual([["disk_full", "agent_version", "2.0", 7]]);
  });

  it("DRIFT-04 of several reasons is several, and one node is part of one at most", () => {
    const nodes = [
      ...many(3, "disk_full", { agent_version: "2.0", subnet: "10.0.1.0/24" }),
      ...many(3, "disk_full", { agent_version: "1.0", subnet: "10.0.2.0/24" }, 5000),
      ...many(3, "clock_skew", { agent_version: "1.0", subnet: "10.0.3.0/24" }),
      ...many(30, null, { agent_version: "1.0", subnet: "10.0.4.0/24" }),
    ];
    expect(named(findCommonCauses(nodes, nothing))).toEqual([
      ["clock_skew", "subnet", "10.0.3.0/24", 3],
      ["disk_full", "agent_version", "2.0", 3],
      ["disk_full", "subnet", "10.0.2.0/24", 3],
    ]);
  });

  it("DRIFT-04 that is open goes on while three are left, also of a large group, and takes in those that follow", () => {
    const open: OpenCause = {
      ...{
        reason: "disk_full",
        attribute: "agent_version",
        value: "2.0",
        since: NOW - 4000 * SECOND,
        outage: null,
      },
    };
    const at = (left: number) =>
      findCommonCauses([...many(left, "disk_full", next), ...many(50, null, next), ...many(5, null, old)], {
        ...nothing,
        open: [open],
      });
    expect(named(at(3))).toEqual([["disk_full", "agent_version", "2.0", 3]]);
    expect(at(3)[0]?.since, "it keeps its beginning").toBe(open.since);
    expect(at(2)).toEqual([]);
    const before = many(3, "disk_full", next, 4301);
    const known = { ...nothing, open: [open] };
    expect(
      findCommonCauses([...before, ...many(9, null, next), node(null, old)], known),
      "had it long before",
    ).toEqual([]);
  });
});

describe("the control plane", () => {
  const alike = { agent_version: "1.0" };

  it("DRIFT-04 is suspected first when most of the fleet goes offline at once, whatever else they share", () => {
    const nodes = [...many(6, "agent_down", next), ...many(5, null, old)];
    expect(findCommonCauses(nodes, nothing)).toMatchObject([
      { reason: "control_plane_unreachable", attribute: "control_plane", outage: null, nodes: { length: 6 } },
    ]);
    const half = [...many(5, "agent_down", next), ...many(5, null, old)];
    expect(named(findCommonCauses(half, nothing))).toEqual([["agent_down", "agent_version", "2.0", 5]]);
  });

  it("DRIFT-04 is not suspected for nodes that went offline one after the other, or that are few", () => {
    const spread = Array.from({ length: 9 }, (_, index) => node("agent_down", alike, 100 + index * 130));
    expect(findCommonCauses(spread, nothing).filter(({ attribute }) => attribute === "control_plane")).toEqual([]);
    expect(named(findCommonCauses(many(4, "agent_down", alike), nothing))).toEqual([
      ["agent_down", "fleet", "", 4],
    ]);
  });

  it("DRIFT-04 is not suspected for problems that it cannot cause", () => {
    const nodes = many(9, "disk_full", alike);
    expect(named(findCommonCauses(nodes, nothing))).toEqual([["disk_full", "fleet", "", 9]]);
  });

  const outage = { from: NOW - 100 * SECOND, to: NOW - 40 * SECOND };
  it("DRIFT-04 is suspected after its own outage, even for one node, while it is expected back", () => {
    const nodes = [node("agent_down", alike, 150), ...many(20, null, alike)];
    const at = (now: number) => findCommonCauses(nodes, { ...nothing, outages: [outage], now });
    expect(at(NOW)).toMatchObject([{ attribute: "control_plane", outage, nodes: { length: 1 } }]);
    expect(at(outage.to + policy.returnAfterOutageMs - 1)).toHaveLength(1);
    expect(at(outage.to + policy.returnAfterOutageMs)).toEqual([]);
  });

  it.for([
    [221, 0],
    [220, 1],
    [100, 1],
    [0, 1],
  ] as const)("DRIFT-04 explains what began %i s ago by an outage from 100 to 40 s ago: %i", ([ago, expected]) => {
    const nodes = [node("agent_down", alike, ago), ...many(20, null, alike)];
    expect(findCommonCauses(nodes, { ...nothing, outages: [outage] })).toHaveLength(expected);
  });

  it("DRIFT-04 is not suspected for a restart that no node notices", () => {
    const nodes = [node("agent_down", alike, 60), ...many(20, null, alike)];
    const restart = { from: NOW - 60 * SECOND, to: NOW - 51 * SECOND };
    expect(findCommonCauses(nodes, { ...nothing, outages: [restart] })).toEqual([]);
  });

  it("DRIFT-04 stays suspected until few are left, unless only an outage spoke for it", () => {
    const key = { reason: "control_plane_unreachable", attribute: "control_plane", value: "" } as const;
    const nodes = [...many(3, "agent_down", alike, 60), ...many(50, null, alike)];
    const at = (left: number, was: OpenCause["outage"]) =>
      findCommonCauses(nodes.slice(3 - left), {
        ...nothing,
        open: [{ ...key, since: NOW - 120 * SECOND, outage: was }],
      });
    expect(at(3, null)).toHaveLength(1);
    expect(at(2, null)).toEqual([]);
    expect(at(3, outage)).toEqual([]);
  });
});

const attributes: fc.Arbitrary<Attributes> = fc.record(
  {
    agent_version: fc.constantFrom("1.0", "2.0"),
    subnet: fc.constantFrom("a", "b", "c"),
    ingress: fc.constantFrom("x", "y"),
  },
  { requiredKeys: [] },
);
const someNodes = fc
  .array(
    fc.record({
      reason: fc.constantFrom(null, "disk_full", "agent_down", "clock_skew", "made_up"),
      since: fc.integer({ min: 0, max: 900 }).map((seconds) => NOW - seconds * SECOND),
      attributes,
    }),
    { maxLength: 30 },
  )
  .map((all): RelatedNode[] => all.map((one, index) => ({ ...one, id: `n${String(index).padStart(2, "0")}` })));
const someOutages = fc.array(
  fc.record({
    from: fc.integer({ min: 100, max: 900 }).map((seconds) => NOW - seconds * SECOND),
    to: fc.option(fc.integer({ min: 0, max: 99 }).map((seconds) => NOW - seconds * SECOND)),
  }),
  { maxLength: 2 },
);
/** Of each, one is open at most: an index sees to it. */
const someOpen = fc.uniqueArray(
  fc.record({
    reason: fc.constantFrom("disk_full", "agent_down"),
    attribute: fc.constantFrom("agent_version" as const, "subnet" as const),
    value: fc.constantFrom("1.0", "2.0", "a"),
    since: fc.integer({ min: 0, max: 900 }).map((seconds) => NOW - seconds * SECOND),
    outage: fc.constant(null),
  }),
  { maxLength: 2, selector: keyOf },
);
const someKnown = fc
  .record({ outages: someOutages, open: someOpen })
  .map((known): Known => ({ ...nothing, ...known }));

describe("over random fleets", () => {
  const holds = (check: (nodes: RelatedNode[], known: Known, causes: CommonCause[]) => void) =>
    fc.assert(
      fc.property(someNodes, someKnown, (nodes, known) => check(nodes, known, findCommonCauses(nodes, known))),
      { numRuns: 5_000 },
    );

  it("DRIFT-04 names nothing that its nodes do not share, and no node twice", () => {
    holds((nodes, _, causes) => {
      const byId = new Map(nodes.map((one) => [one.id, one]));
      const all = causes.flatMap((cause) => cause.nodes);
      expect(new Set(all).size).toBe(all.length);
      expect(new Set(causes.map(keyOf)).size).toBe(causes.length);
      for (const { reason, attribute, value, nodes: ids } of causes) {
        expect(ids.length).toBeGreaterThan(0);
        for (const id of ids) {
          const its = byId.get(id);
          expect(its?.reason).not.toBeNull();
          if (attribute === "control_plane") expect(its?.reason).toBe("agent_down");
          else expect(its?.reason).toBe(reason);
          if (attribute !== "control_plane" && attribute !== "fleet")
            expect(its?.attributes[attribute]).toBe(value);
        }
      }
    });
  });

  it("DRIFT-04 has at least as many nodes as the policy asks for, unless an outage explains them", () => {
    holds((nodes, { open }, causes) => {
      for (const cause of causes) {
        const { attribute, nodes: ids } = cause;
        if (cause.outage !== null) continue;
        expect(ids.length).toBeGreaterThanOrEqual(policy.leastNodes);
        if (open.some((one) => keyOf(one) === keyOf(cause))) continue;
        const isOfAll = attribute === "fleet" || attribute === "control_plane";
        const sharing = nodes.filter((one) => isOfAll || one.attributes[attribute] === cause.value).length;
        expect(ids.length).toBeGreaterThanOrEqual(sharing / 2);
      }
    });
  });

  it("DRIFT-04 does not depend on the order of nodes, outages or open causes", () => {
    fc.assert(
      fc.property(someNodes, someKnown, fc.infiniteStream(fc.nat()), (nodes, known, random) => {
        const shuffled = <One>(all: readonly One[]) =>
          all
            .map((one) => [random.next().value ?? 0, one] as const)
            .sort(([a], [b]) => a - b)
            .map(([, one]) => one);
        const other = { ...known, open: shuffled(known.open), outages: shuffled(known.outages) };
        expect(findCommonCauses(shuffled(nodes), other)).toEqual(findCommonCauses(nodes, known));
      }),
      { numRuns: 5_000 },
    );
  });

  it("DRIFT-04 a healthy node with another value never ends the largest cause of a reason", () => {
    holds((nodes, known, causes) => {
      for (const [, ofReason] of Map.groupBy(causes, ({ reason }) => reason)) {
        const largest = Math.max(...ofReason.map((one) => one.nodes.length));
        const [cause, another] = ofReason.filter((one) => one.nodes.length === largest);
        if (!cause || another || cause.attribute === "fleet" || cause.attribute === "control_plane") continue;
        const healthy: RelatedNode = {
          ...{ id: "zz", reason: null, since: NOW, attributes: { [cause.attribute]: "another" } },
        };
        expect(findCommonCauses([...nodes, healthy], known)).toContainEqual(cause);
      }
    });
  });

  it("DRIFT-04 ends when its nodes recover until too few are left", () => {
    holds((nodes, known, causes) => {
      for (const cause of causes.filter(({ outage }) => outage === null)) {
        const left = new Set(cause.nodes.slice(0, policy.leastNodes - 1));
        const after = nodes.map((one) =>
          left.has(one.id) || one.reason === null ? one : { ...one, reason: null as string | null },
        );
        const { nodes: _, ...open } = cause;
        const found = findCommonCauses(after, { ...known, outages: [], open: [open] });
        expect(found).toEqual([]);
      }
    });
  });
});
