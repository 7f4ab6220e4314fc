import {
  type FleetFilter,
  type FleetState,
  fleetStates,
  notFineStates,
} from "@holdfast/contracts/endpoints/fleet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { suspectControlPlane as suspect } from "./common-cause.ts";
import { keepHistory } from "./history.ts";
import { blockOf, type FleetNode } from "./node.ts";
import { summarize as summarizeAt } from "./summary.ts";

const at = new Date("2026-03-01T03:00:00.000Z");
const nodeApiUrl = "https://nodes.example.com:18999";
const suspectControlPlane = (nodes: readonly FleetNode[]) => suspect(nodes, { nodeApiUrl });
const summarize = (nodes: readonly FleetNode[], filter: FleetFilter) =>
  summarizeAt(nodes, filter, { at, nodeApiUrl });

function made(number: number, over: Partial<FleetNode> = {}): FleetNode {
  const name = `n${String(number).padStart(4, "0")}`;
  const state = over.state ?? "fine";
  return {
    id: name,
    name,
    status: "active",
    state,
    reason: over.reason ?? null,
    reasons: over.reason ? [over.reason] : [],
    version: "1",
    block: "10.0.0.0/24",
    since: null,
    report: undefined,
    ...over,
  };
}

const silent = (number: number, secondsAgo: number): FleetNode =>
  made(number, { state: "silent", reason: "heartbeat_stale", since: at.getTime() - secondsAgo * 1000 });

describe("whether the control plane is the likely cause", () => {
  const fleet = (bad: FleetNode[], good: number) => [
    ...bad,
    ...Array.from({ length: good }, (_, index) => made(1_000 + index)),
  ];
  const many = (count: number, secondsAgo: (index: number) => number) =>
    Array.from({ length: count }, (_, index) => silent(index, secondsAgo(index)));

  it("DRIFT-04 does when most fell silent within a moment", () => {
    const suspicion = suspectControlPlane(
      fleet(
        many(60, (index) => 300 + (index % 20)),
        40,
      ),
    );
    expect(suspicion?.message).toMatch(/^60 of 100 nodes/);
  });

  it("DRIFT-04 does not for a rack, for those that fell silent one by one, nor for a handful of nodes", () => {
    expect(
      suspectControlPlane(
        fleet(
          many(32, () => 300),
          68,
        ),
      ),
    ).toBeNull();
    expect(
      suspectControlPlane(
        fleet(
          many(80, (index) => index * 600),
          20,
        ),
      ),
    ).toBeNull();
    expect(suspectControlPlane(many(4, () => 300))).toBeNull();
  });

  it.each([
    ["clock_skew", /server's own clock/],
    ["cert_renewal_overdue", /renew their certificate/],
  ])("DRIFT-04 does when most have %s", (reason, words) => {
    const bad = Array.from({ length: 60 }, (_, index) => made(index, { state: "troubled", reason }));
    expect(suspectControlPlane(fleet(bad, 40))?.message).toMatch(words);
    expect(suspectControlPlane(fleet(bad.slice(0, 20), 80))).toBeNull();
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
        ...(notFineStates.includes(state) ? { reason: code, reasons: [code] } : {}),
      }),
    );

  it("DASH-01 adds up, and what is shared is never more than there is", () => {
    fc.assert(
      fc.property(fc.uniqueArray(node, { selector: ({ id }) => id, maxLength: 80 }), (nodes) => {
        const summary = summarize(nodes, {});
        expect(Object.values(summary.states).reduce((sum, count) => sum + count, 0)).toBe(nodes.length);
        expect(summary.not_fine).toBe(nodes.filter(({ state }) => notFineStates.includes(state)).length);
        expect(summary.troubles.reduce((sum, { count }) => sum + count, 0)).toBe(summary.not_fine);
        for (const { common, count } of summary.troubles) {
          for (const share of common) expect(share.count <= share.of && share.count <= count).toBe(true);
        }
      }),
    );
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
        const seen = steps.map((states, index) => {
          const nodes = Object.entries(states).map(([name, state]) => ({ ...made(0), id: name, name, state }));
          history.record(nodes, index);
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
