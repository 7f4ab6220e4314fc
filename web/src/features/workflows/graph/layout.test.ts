// The places of a graph's nodes.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layout, NODE_HEIGHT, NODE_WIDTH } from "./layout.ts";

describe("the layout of a graph", () => {
  it("DASH-06 puts a node below everything that it waits for", () => {
    const places = layout([
      { id: "c", from: ["a", "b"] },
      { id: "b", from: ["a"] },
      { id: "a", from: [] },
    ]);
    const y = (id: string) => places.get(id)?.y ?? Number.NaN;
    expect(y("a")).toBeLessThan(y("b"));
    expect(y("b")).toBeLessThan(y("c"));
  });

  it("DASH-06 puts branches below their own parent", () => {
    const places = layout([
      { id: "left", from: [] },
      { id: "right", from: [] },
      { id: "of-right", from: ["right"] },
      { id: "of-left", from: ["left"] },
    ]);
    expect(places.get("of-left")?.x).toBe(places.get("left")?.x);
    expect(places.get("of-right")?.x).toBe(places.get("right")?.x);
  });

  const ids = fc.uniqueArray(fc.stringMatching(/^[a-h]$/), { minLength: 0, maxLength: 8 });
  const graphs = ids.chain((all) =>
    fc.tuple(
      ...all.map((id) => fc.record({ id: fc.constant(id), from: fc.array(fc.constantFrom("zz", ...all)) })),
    ),
  );

  it("DASH-06 places every node of any graph, cycles too, and none over another", () => {
    fc.assert(
      fc.property(graphs, (nodes) => {
        const places = layout(nodes);
        expect([...places.keys()].sort()).toEqual(nodes.map(({ id }) => id).sort());
        const all = [...places.values()];
        for (const [index, one] of all.entries()) {
          for (const other of all.slice(index + 1)) {
            expect(Math.abs(one.x - other.x) >= NODE_WIDTH || Math.abs(one.y - other.y) >= NODE_HEIGHT).toBe(true);
          }
        }
        expect(layout(nodes)).toEqual(places);
      }),
    );
  });

  it("DASH-06 draws every edge of a graph without cycles downwards", () => {
    fc.assert(
      fc.property(graphs, (nodes) => {
        const acyclic = nodes.map(({ id, from }) => ({ id, from: from.filter((one) => one < id) }));
        const places = layout(acyclic);
        for (const { id, from } of acyclic)
          for (const one of from)
            expect(places.get(one)?.y).toBeLessThan(places.get(id)?.y ?? Number.NEGATIVE_INFINITY);
      }),
    );
  });
});
