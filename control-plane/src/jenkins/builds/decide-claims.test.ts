import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideClaims, type KnownBuild, type QueuedItem, type Serving } from "./decide-claims.ts";

const NOW = 1_000_000_000;
const serving: Serving = {
  labels: [
    { jenkins_labels: ["linux", "docker"], lease_label: "big" },
    { jenkins_labels: ["linux"], lease_label: "small" },
  ],
  ...{ mostLeases: 10, burst: 10, cooldownSeconds: 10 },
};
const item = (queueId: number, changes: Partial<QueuedItem> = {}): QueuedItem => ({
  ...{ queueId, task: `job-${queueId}`, label: "linux", buildable: true, why: "", queuedAt: NOW - 1000 + queueId },
  ...changes,
});
const verdictsOf = (items: QueuedItem[], builds: KnownBuild[] = [], changes: Partial<Serving> = {}) =>
  decideClaims(items, builds, { ...serving, ...changes }, NOW).judged.map(({ verdict }) => verdict);

describe("which items get a VM", () => {
  it.for([
    [{ label: "linux" }, "gets_vm"],
    [{ label: "linux && !docker" }, "gets_vm"],
    [{ label: "!windows" }, "gets_vm"],
    [{ label: "windows" }, "not_served"],
    [{ label: "linux &&" }, "label_unreadable"],
    [{ label: undefined }, "no_label"],
    [{ buildable: false, why: "In the quiet period." }, "not_buildable"],
  ] as const)("VM-06 %j: %s", ([changes, expected]) => {
    expect(verdictsOf([item(1, changes)])).toEqual([expected]);
  });

  it("VM-06 takes the first policy whose node may run it", () => {
    const policies = (label: string) =>
      decideClaims([item(1, { label })], [], serving, NOW).claims.map(({ policy }) => policy.lease_label);
    expect(policies("linux")).toEqual(["big"]);
    expect(policies("linux && !docker")).toEqual(["small"]);
  });

  it("VM-06 waits after a VM that failed, twice as long after the next one, and never longer than an hour", () => {
    const ended = (count: number, secondsAgo: number): KnownBuild[] =>
      Array.from({ length: count }, () => ({ queueId: 1, createdAt: 0, finishedAt: NOW - secondsAgo * 1000 }));
    expect(verdictsOf([item(1)], ended(1, 9))).toEqual(["cooldown"]);
    expect(verdictsOf([item(1)], ended(1, 10))).toEqual(["gets_vm"]);
    expect(verdictsOf([item(1)], ended(2, 19))).toEqual(["cooldown"]);
    expect(verdictsOf([item(1)], ended(2, 20))).toEqual(["gets_vm"]);
    expect(verdictsOf([item(1)], ended(60, 3599))).toEqual(["cooldown"]);
    expect(verdictsOf([item(1)], ended(60, 3600))).toEqual(["gets_vm"]);
    expect(verdictsOf([item(2)], ended(60, 1))).toEqual(["gets_vm"]);
  });

  it("VM-06 serves the oldest first", () => {
    const items = [item(1, { queuedAt: NOW - 1 }), item(2, { queuedAt: NOW - 3 }), item(3, { queuedAt: NOW - 2 })];
    const { claims } = decideClaims(items, [], { ...serving, mostLeases: 2 }, NOW);
    expect(claims.map((one) => one.item.queueId)).toEqual([2, 3]);
  });

  it("VM-06 never exceeds cap or burst, never gives an item two, and judges each item once", () => {
    const items = fc.uniqueArray(
      fc.record({
        queueId: fc.integer({ min: 1, max: 40 }),
        label: fc.constantFrom("linux", "windows", undefined),
      }),
      { selector: ({ queueId }) => queueId },
    );
    const builds = fc.array(
      fc.record({
        queueId: fc.integer({ min: 1, max: 40 }),
        createdAt: fc.integer({ min: NOW - 30_000, max: NOW }),
        finishedAt: fc.option(fc.integer({ min: NOW - 30_000, max: NOW }), { nil: undefined }),
      }),
      { maxLength: 20 },
    );
    const limits = fc.record({
      mostLeases: fc.integer({ min: 0, max: 12 }),
      burst: fc.integer({ min: 1, max: 12 }),
      cooldownSeconds: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(items, builds, limits, (queue, known, given) => {
        const { claims, judged } = decideClaims(
          queue.map((one) => item(one.queueId, one)),
          known,
          { ...serving, ...given },
          NOW,
        );
        const open = known.filter(({ finishedAt }) => finishedAt === undefined);
        const recent = known.filter(({ createdAt }) => createdAt > NOW - given.cooldownSeconds * 1000);
        expect(claims.length).toBeLessThanOrEqual(Math.max(0, given.mostLeases - open.length));
        expect(claims.length).toBeLessThanOrEqual(Math.max(0, given.burst - recent.length));
        for (const claim of claims) expect(open.some(({ queueId }) => queueId === claim.item.queueId)).toBe(false);
        expect(judged.map((one) => one.item.queueId).sort()).toEqual(queue.map(({ queueId }) => queueId).sort());
      }),
    );
  });
});
