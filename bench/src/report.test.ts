// The arithmetic behind every figure, and the shape that readers of --json rely on.

import { describe, expect, it } from "vitest";
import type { Bench, FigureSpec } from "./bench.ts";
import { runPasses } from "./contest.ts";
import { stepsIn } from "./holdfast.ts";
import { makeReport, median, tableOf } from "./report.ts";
import { slopeOf } from "./slope.ts";

const machine = { cpu: "test", cores: 2, memory_gb: 8, kernel: "6.1", node: "24.0.0" };

function figureOf(
  spec: Partial<FigureSpec>,
  passes: [ours: number, theirs: number, floor?: number][],
  absent?: Record<string, string>,
) {
  const figure: FigureSpec = { name: "time", unit: "s", better: "lower", peer: "a peer", ...spec };
  const bench = { name: "b", summary: "", figures: [figure] } as unknown as Bench;
  const measured = passes.map(([ours, theirs, floor]) => ({
    ours: { time: ours },
    theirs: { time: theirs },
    ...(floor === undefined ? {} : { floor: { time: floor } }),
  }));
  const report = makeReport({ bench, machine, passes: measured, absent });
  return { report, figure: report.figures[0] };
}

describe("a bench report", () => {
  it("takes medians, so that one disturbed pass says nothing", () => {
    expect(median([3, 1, 90])).toBe(3);
    expect(median([4, 1, 3, 90])).toBe(3.5);
    expect(() => median([])).toThrow();
    const { figure } = figureOf({}, [
      [1, 2],
      [50, 2],
      [1.5, 3],
    ]);
    expect(figure).toMatchObject({ ours: 1.5, theirs: 2, ratio: 0.75 });
  });

  it("judges a target in the direction that is better", () => {
    const ours = { of: "ours", value: 4 } as const;
    expect(figureOf({ target: ours }, [[4, 1]]).figure).toMatchObject({ target: "ours <= 4", ok: true });
    expect(figureOf({ target: ours }, [[4.1, 9]]).figure).toMatchObject({ ok: false });
    const ratio = { of: "ratio", value: 0.6 } as const;
    const higher = { target: ratio, better: "higher" } as const;
    expect(figureOf(higher, [[60, 100]]).figure).toMatchObject({ target: "ratio >= 0.6", ok: true });
    expect(figureOf(higher, [[59, 100]]).figure).toMatchObject({ ratio: 0.59, ok: false });
    expect(figureOf({}, [[9, 1]]).figure).toMatchObject({ target: null, ok: true });
  });

  it("has exactly the documented fields", () => {
    const { report, figure } = figureOf({}, [[1, 2]]);
    expect(Object.keys(report)).toEqual(["bench", "machine", "passes", "figures"]);
    expect(Object.keys(figure ?? {})).toEqual([
      "name",
      "unit",
      "ours",
      "peer",
      "theirs",
      "ratio",
      "better",
      "target",
      "ok",
    ]);
    expect(tableOf(report).at(-1)).toMatch(/^time +1 s +2 s +0\.5 +lower +-$/);
  });

  it("says why a peer is not there, and judges nothing by it", () => {
    const absent = { "a peer": "it is not installed" };
    const ratio = figureOf({ target: { of: "ratio", value: 1 } }, [[1, Number.NaN]], absent);
    const peer = "a peer (not measured: it is not installed)";
    expect(ratio.figure).toMatchObject({ ours: 1, peer, theirs: null, ratio: null, ok: false });
    expect(tableOf(ratio.report).at(-1)).toMatch(/^time +1 s +- +- +lower +ratio <= 1 +not measured$/);
    const ours = figureOf({ target: { of: "ours", value: 1 } }, [[1, Number.NaN]], absent);
    expect(ours.figure).toMatchObject({ ok: true });
  });

  it("refuses a figure that a pass did not measure", () => {
    expect(() => figureOf({ name: "other" }, [[1, 2]])).toThrow("other was not measured");
    expect(() => figureOf({ floor: "the least" }, [[1, 2]])).toThrow("time was not measured");
  });

  it("sets a figure beside its floor, in JSON and in two columns of the table", () => {
    const { report, figure } = figureOf({ floor: "the least" }, [
      [3, 2, 1],
      [3, 2, 40],
      [3, 2, 1.5],
    ]);
    expect(figure).toMatchObject({ ours: 3, ratio: 1.5, floor: 1.5, over_floor: 2, floor_is: "the least" });
    const table = tableOf(report);
    expect(table).toContain("floor: the least");
    expect(table.at(-2)).toMatch(/^figure +ours +theirs +ratio +floor +÷ floor +better +target$/);
    expect(table.at(-1)).toMatch(/^time +3 s +2 s +1\.5 +1\.5 s +2 +lower +-$/);
  });

  it("takes the peer for the floor where they are the same", () => {
    const { figure } = figureOf({ floor: "a peer" }, [[3, 2]]);
    expect(figure).toMatchObject({ theirs: 2, ratio: 1.5, floor: 2, over_floor: 1.5 });
  });

  it("judges a target that is a multiple of the floor", () => {
    const atMost = { floor: "the least", target: { of: "over_floor", value: 1.25 } } as const;
    expect(figureOf(atMost, [[5, 1, 4]]).figure).toMatchObject({ target: "over_floor <= 1.25", ok: true });
    const missed = figureOf(atMost, [[5.1, 100, 4]]);
    expect(missed.figure).toMatchObject({ ok: false });
    expect(tableOf(missed.report).at(-1)).toMatch(/÷ floor <= 1\.25 +MISSED$/);
  });

  it("has a row without a floor beside one that has", () => {
    const figures: FigureSpec[] = [
      { name: "a", unit: "s", better: "lower", peer: "p", floor: "the least" },
      { name: "b", unit: "s", better: "lower", peer: "p" },
    ];
    const bench = { name: "b", summary: "", figures } as unknown as Bench;
    const passes = [{ ours: { a: 2, b: 2 }, theirs: { a: 1, b: 1 }, floor: { a: 1 } }];
    const table = tableOf(makeReport({ bench, machine, passes }));
    expect(table.at(-1)).toMatch(/^b +2 s +1 s +2 +- +- +lower +-$/);
  });
});

describe("a contest", () => {
  it("runs both sides in turns, after a warm-up that does not count", async () => {
    const order: string[] = [];
    const side = (name: string) => async () => {
      order.push(name);
      return { count: order.length };
    };
    const contest = { ours: side("ours"), theirs: side("theirs") };
    const passes = await runPasses(contest, { passes: 2, onMeasured: () => undefined });
    expect(order).toEqual(["ours", "theirs", "ours", "theirs", "theirs", "ours"]);
    expect(passes).toEqual([
      { ours: { count: 3 }, theirs: { count: 4 } },
      { ours: { count: 6 }, theirs: { count: 5 } },
    ]);
  });

  it("measures the floor in the same turns", async () => {
    const order: string[] = [];
    const side = (name: string) => async () => {
      order.push(name);
      return { count: order.length };
    };
    const contest = { ours: side("ours"), theirs: side("theirs"), floor: side("floor") };
    const passes = await runPasses(contest, { passes: 2, onMeasured: () => undefined });
    expect(order.slice(3)).toEqual(["ours", "theirs", "floor", "floor", "theirs", "ours"]);
    expect(passes.map(({ floor }) => floor)).toEqual([{ count: 6 }, { count: 7 }]);
  });

  it("reads the steps that `holdfast up` prints", () => {
    const printed =
      "  creating the database\n✓ PostgreSQL accepts connections 1.5 s\n✓ Schema is up to date 120 ms\n";
    expect(stepsIn(printed)).toEqual({ "PostgreSQL accepts connections": 1.5, "Schema is up to date": 0.12 });
  });
});

describe("a slope", () => {
  it("is that of the line nearest to all points", () => {
    expect(slopeOf([1, 3, 5].map((y, x) => ({ x, y })))).toBe(2);
    expect(slopeOf([0, 1, 0, 1].map((y, x) => ({ x, y })))).toBeCloseTo(0.2);
    expect(slopeOf([7, 7, 7].map((y, x) => ({ x, y })))).toBe(0);
    expect(() => slopeOf([{ x: 0, y: 1 }])).toThrow("two points");
  });
});
