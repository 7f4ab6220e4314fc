import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CellAt, cellAt, cellPosition, HEADING, type Layout, layOut, stepFrom } from "./layout.ts";

const sizes = fc.array(fc.record({ count: fc.integer({ min: 0, max: 300 }), calm: fc.boolean() }), {
  maxLength: 30,
});
const width = fc.integer({ min: 200, max: 1600 });

function everyCell({ groups }: Layout): CellAt[] {
  return groups.flatMap(({ count }, group) => Array.from({ length: count }, (_, index) => ({ group, index })));
}

describe("the cells of the picture", () => {
  it("DASH-01 are one for each node, within the picture, and none covers another", () => {
    fc.assert(
      fc.property(sizes, width, (given, room) => {
        const layout = layOut(given, { width: room, height: 380 });
        const taken = new Set<string>();
        for (const at of everyCell(layout)) {
          const position = cellPosition(layout, at);
          if (!position) throw new Error("a cell has no place");
          const { x, y, pitch } = position;
          expect(x >= 0 && x + pitch <= layout.width && y >= HEADING && y + pitch <= layout.height).toBe(true);
          const middle = { x: x + pitch / 2, y: y + pitch / 2 };
          expect(cellAt(layout, middle)).toEqual(at);
          taken.add(`${x} ${y}`);
        }
        expect(taken.size).toBe(given.reduce((sum, { count }) => sum + count, 0));
      }),
      { numRuns: 40 },
    );
  });

  it("DASH-01 are large for few nodes, and ten thousand still fit on a screen", () => {
    const one = layOut([{ count: 3, calm: true }], { width: 1080, height: 380 });
    expect(one.groups[0]?.pitch).toBe(30);
    const many = [
      { count: 104, calm: false },
      { count: 249, calm: false },
      { count: 9_647, calm: true },
    ];
    const wide = layOut(many, { width: 1080, height: 380 });
    expect(wide.height).toBeLessThan(500);
    expect(wide.groups[0]?.pitch).toBeGreaterThanOrEqual(wide.groups[2]?.pitch ?? 0);
    expect(layOut(many, { width: 350, height: 380 }).height).toBeLessThan(1_000);
  });

  it("DASH-01 are all reached by the arrow keys, there and back", () => {
    fc.assert(
      fc.property(sizes, (given) => {
        const layout = layOut(given, { width: 400, height: 380 });
        const all = everyCell(layout);
        const walk = (key: string) => {
          const seen: CellAt[] = [];
          let at = key === "ArrowRight" ? undefined : all.at(-1);
          if (at) seen.push(at);
          for (let steps = seen.length; steps < all.length; steps += 1) {
            at = stepFrom(layout, at, key);
            if (at) seen.push(at);
          }
          return seen;
        };
        expect(walk("ArrowRight")).toEqual(all);
        expect(walk("ArrowLeft").toReversed()).toEqual(all);
        expect(stepFrom(layout, all[0], "x")).toBeUndefined();
      }),
      { numRuns: 30 },
    );
  });
});
