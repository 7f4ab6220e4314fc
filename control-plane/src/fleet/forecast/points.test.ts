import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LostNodes, pointsOf, sentenceOf } from "./points.ts";

const times = Array.from({ length: 6 }, (_, hour) => new Date(Date.UTC(2026, 2, 1, hour)));
const numbers = (lost: LostNodes[]) =>
  pointsOf(times, lost).map(({ lost: gone, recovering }) => [gone, recovering]);

describe("a forecast", () => {
  it("counts nodes from the time on at which their certificate has expired, as long as their token is current", () => {
    expect(numbers([{ from: 2, recoverBefore: 0, nodes: 3 }])).toEqual([
      ...[0, 0, 3, 3, 3, 3].map((gone) => [gone, 0]),
    ]);
    expect(numbers([{ from: 1, recoverBefore: 4, nodes: 2 }])).toEqual([
      ...[
        [0, 0],
        [2, 2],
        [2, 2],
        [2, 2],
        [2, 0],
        [2, 0],
      ],
    ]);
    expect(numbers([{ from: 6, recoverBefore: 6, nodes: 9 }]).at(-1)).toEqual([0, 0]);
    expect(numbers([{ from: 5, recoverBefore: 6, nodes: 9 }]).at(-1)).toEqual([9, 9]);
  });

  it("never has fewer lost nodes later, nor more that recover than are lost", () => {
    const place = fc.integer({ min: 0, max: times.length });
    const groups = fc.array(
      fc.record({ from: place, recoverBefore: place, nodes: fc.integer({ min: 1, max: 50 }) }),
    );
    fc.assert(
      fc.property(groups, (lost) => {
        const points = pointsOf(times, lost);
        points.forEach((point, index) => {
          const having = lost.filter(({ from }) => from <= index);
          const sum = (all: LostNodes[]) => all.reduce((nodes, one) => nodes + one.nodes, 0);
          expect(point.lost).toBe(sum(having));
          expect(point.recovering).toBe(sum(having.filter(({ recoverBefore }) => recoverBefore > index)));
          expect(point.lost).toBeGreaterThanOrEqual(points[index - 1]?.lost ?? 0);
        });
      }),
    );
  });

  it.for([
    [10, 0, 0, "no node loses its identity."],
    [1, 1, 0, "1 of 1 node loses its identity, and does not recover without an operator."],
    [10, 1, 1, "1 of 10 nodes loses its identity, and recovers by itself."],
    [10, 4, 0, "4 of 10 nodes lose their identity, and none of them recovers without an operator."],
    [10, 4, 4, "4 of 10 nodes lose their identity, and all of them recover by themselves."],
    [10, 4, 3, "4 of 10 nodes lose their identity, of which 3 recover by themselves."],
    [10, 4, 1, "4 of 10 nodes lose their identity, of which 1 recovers by itself."],
  ] as const)(
    "of %d nodes, %d lost and %d recovering, is said in a sentence",
    ([nodes, lost, recovering, rest]) => {
      const until = { at: "2026-03-02T03:00:00.000Z", lost, recovering };
      expect(sentenceOf({ nodes, until })).toBe(
        `If the control plane stays down until 2026-03-02 03:00 UTC, ${rest}`,
      );
    },
  );
});
