import { fleetStates } from "@holdfast/contracts/endpoints/fleet";
import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupings, groupNodes, isNotFine } from "./grouping.ts";

const node: fc.Arbitrary<PictureNode> = fc.record({
  name: fc.uuid(),
  state: fc.constantFrom(...fleetStates),
  reason: fc.option(fc.constantFrom("disk_full", "heartbeat_stale", "brand_new")),
  version: fc.option(fc.constantFrom("1.4.0", "1.3.2")),
  block: fc.option(fc.integer({ min: 0, max: 999 }).map((rack) => `10.0.${rack}.0/24`)),
  since: fc.constant(null),
});

describe("groups of nodes", () => {
  it.each(groupings)("DASH-01 by %s hold every node once, and count those that are not fine", (by) => {
    fc.assert(
      fc.property(fc.array(node, { maxLength: 600 }), (nodes) => {
        const groups = groupNodes(nodes, by);
        expect(groups.length).toBeLessThanOrEqual(300);
        expect(new Set(groups.flatMap((group) => group.nodes))).toEqual(new Set(nodes));
        expect(groups.reduce((sum, group) => sum + group.nodes.length, 0)).toBe(nodes.length);
        for (const group of groups) {
          expect(group.notFine).toBe(group.nodes.filter(isNotFine).length);
          expect(group.label).not.toBe("");
        }
      }),
      { numRuns: 40 },
    );
  });

  it("DASH-01 come with the worst first", () => {
    const made = (over: Partial<PictureNode>): PictureNode => ({
      name: "n",
      state: "fine",
      reason: null,
      version: "1",
      block: "10.0.10.0/24",
      since: null,
      ...over,
    });
    const nodes = [
      made({}),
      made({}),
      made({ block: "10.0.2.0/24" }),
      made({ block: "10.0.9.0/24", state: "silent", reason: "heartbeat_stale" }),
    ];
    const labels = (by: (typeof groupings)[number]) => groupNodes(nodes, by).map(({ label }) => label);
    expect(labels("state")).toEqual(["Offline", "Healthy"]);
    expect(labels("reason")).toEqual(["No heartbeat", "No problem"]);
    nodes.push(made({ block: "10.0.9.0/24", state: "silent" }));
    expect(labels("reason")).toEqual(["Cause being determined", "No heartbeat", "No problem"]);
    expect(labels("block")).toEqual(["10.0.9.0/24", "10.0.2.0/24", "10.0.10.0/24"]);
  });
});
