import { describe, expect, it } from "vitest";
import { type Holder, type Lineage, noLineage } from "./lineage.ts";
import { recommendOriginal } from "./original.ts";

const holder = (id: number, changes: Partial<Holder> = {}): Holder => ({
  ...{ id, instanceId: `i${id}`, bootId: `b${id}`, serial: "a1", address: `10.0.0.${id}`, hostname: "vm" },
  ...{ startedAt: null, tips: [id], parent: 0, firstAt: id * 1_000, lastAt: 99_000, ended: false },
  ...changes,
});
const lineageOf = (...holders: Holder[]): Lineage => {
  const [one, other] = holders.slice(-2);
  return { ...noLineage, holders, pair: one && other ? [one.id, other.id] : null };
};

describe("which one is the original", () => {
  it("ID-10 is not said where nothing was proved", () => {
    expect(recommendOriginal({ ...lineageOf(holder(1), holder(2)), pair: null })).toBeUndefined();
  });

  it("ID-10 is the one that was known first, and says why", () => {
    expect(recommendOriginal(lineageOf(holder(4), holder(7)))).toEqual({
      recommended: 4,
      why: ["Holder 4 (vm, 10.0.0.4) was known before the other one appeared at 1970-01-01T00:00:07.000Z."],
    });
  });

  it("ID-10 is the one that is as the node was before either of them", () => {
    const before = holder(1, { bootId: "b4", address: "10.0.0.4" });
    const { recommended, why } = recommendOriginal(lineageOf(before, holder(4), holder(7))) ?? {};
    expect(recommended).toBe(4);
    expect(why?.slice(1)).toEqual([
      "Holder 4 (vm, 10.0.0.4) has the boot id that the node had before: b4.",
      "Holder 4 (vm, 10.0.0.4) has the address that the node had before: 10.0.0.4.",
    ]);
  });

  it("ID-10 stays open where the evidence is contradictory, or there is none", () => {
    const returned = lineageOf(holder(1, { address: "10.0.0.7" }), holder(4), holder(7));
    expect(recommendOriginal(returned)).toMatchObject({ recommended: null });
    expect(recommendOriginal(returned)?.why.at(-1)).toMatch("contradictory");
    const forked = lineageOf(holder(4, { firstAt: 1 }), holder(7, { firstAt: 1, address: "10.0.0.4" }));
    expect(recommendOriginal(forked)).toEqual({
      recommended: null,
      why: ["Nothing tells them apart. Look at both hosts."],
    });
  });

  it("ID-10 takes the newer recovery token into account", () => {
    const forked = lineageOf(holder(4, { firstAt: 1 }), holder(7, { firstAt: 1 }));
    expect(
      recommendOriginal(
        forked,
        new Map([
          [4, 2],
          [7, 3],
        ]),
      )?.recommended,
    ).toBe(7);
    expect(
      recommendOriginal(
        forked,
        new Map([
          [4, 3],
          [7, 2],
        ]),
      )?.recommended,
    ).toBe(4);
    expect(recommendOriginal(forked, new Map([[4, 3]]))?.recommended).toBeNull();
  });
});
