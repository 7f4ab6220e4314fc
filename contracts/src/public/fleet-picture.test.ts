import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fleetStates } from "../endpoints/fleet.ts";
import { applyPicture, byName, type PictureNode, packNodes, unpackNodes } from "./fleet-picture.ts";

const at = Date.parse("2026-03-01T03:00:00.000Z");

const node: fc.Arbitrary<PictureNode> = fc
  .record({
    name: fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/),
    state: fc.constantFrom(...fleetStates),
    reason: fc.option(fc.constantFrom("disk_full", "heartbeat_stale", "with space")),
    version: fc.option(fc.constantFrom("1.4.0", "1.3.2", "")),
    block: fc.option(fc.constantFrom("10.0.0.0/24", "10.0.1.0/24")),
    since: fc.option(fc.integer({ min: 0, max: 10_000_000 }).map((seconds) => at - seconds * 1000)),
  })
  .map((one) => (one.state === "fine" ? { ...one, since: null } : one));

const nodes = fc
  .uniqueArray(node, { selector: ({ name }) => name, maxLength: 40 })
  .map((some) => some.toSorted(byName));

const head = { version: "v.1", at: new Date(at).toISOString() };

describe("a picture of the fleet", () => {
  it("DASH-04 is unpacked as it was packed", () => {
    fc.assert(
      fc.property(nodes, (some) => {
        expect(unpackNodes(packNodes(some, at), at)).toEqual(some);
      }),
    );
  });

  it("DASH-04 with what changed is the picture of what there is", () => {
    fc.assert(
      fc.property(nodes, nodes, (before, after) => {
        const names = new Set(after.map(({ name }) => name));
        const gone = before.flatMap(({ name }) => (names.has(name) ? [] : name));
        const changes = { ...head, whole: false, gone, ...packNodes(after, at) };
        expect(applyPicture(before, changes)).toEqual(after);
        expect(applyPicture(before, { ...changes, whole: true })).toEqual(after);
      }),
    );
  });

  it("DASH-04 takes about ten bytes for each of 10,000 nodes", () => {
    const many = Array.from({ length: 10_000 }, (_, index): PictureNode => {
      const silent = index % 100 === 0;
      return {
        name: `node-${String(index).padStart(5, "0")}`,
        state: silent ? "silent" : "fine",
        reason: silent ? "heartbeat_stale" : null,
        version: "1.4.0",
        block: `10.0.${Math.floor(index / 64)}.0/24`,
        since: silent ? at - 90_000 : null,
      };
    });
    expect(JSON.stringify(packNodes(many, at)).length).toBeLessThan(120_000);
  });
});
