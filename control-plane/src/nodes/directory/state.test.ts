import { nodeStatuses } from "@holdfast/contracts/node/protocol";
import { describe, expect, it } from "vitest";
import {
  isRevoked,
  lifecycle,
  type NodeEvent,
  nodeEvents,
  type Position,
  positionOf,
  positions,
  statusOf,
} from "./state.ts";

/** What should come of each cell, written down apart from the code; `-` is a refusal. */
const expected: Record<Position, string> = {
  //             heartbeat    drain     fence        reactivate  revoke   retire   enrolled
  enrolling: "   active       -         quarantined  -           revoked  retired  enrolling",
  active: "      active       draining  quarantined  active      revoked  retired  active",
  draining: "    draining     draining  quarantined  active      revoked  retired  draining",
  quarantined: " quarantined  -         quarantined  active      revoked  retired  quarantined",
  revoked: "     revoked      -         revoked      -           revoked  retired  quarantined",
  retired: "     retired      -         -            -           -        retired  -",
};

const cells = positions.flatMap((from) =>
  nodeEvents.map((event, column) => ({ from, event, to: expected[from].trim().split(/\s+/)[column] })),
);

describe("the lifecycle of a node", () => {
  it.each(cells)("ID-09 $from on $event leads to $to", ({ from, event, to }) => {
    const outcome = lifecycle[from][event];
    if (to === "-") expect(outcome).toEqual({ refused: expect.stringMatching(/^It .+\.$/) });
    else expect(outcome).toBe(to);
  });

  it("ID-09 has a cell for every event in every position", () => {
    expect(cells).toHaveLength(42);
    expect(Object.keys(lifecycle)).toEqual([...positions]);
    for (const from of positions) expect(Object.keys(lifecycle[from])).toEqual([...nodeEvents]);
  });

  it("ID-09 leaves retirement by no event, and revocation by enrollment or retirement only", () => {
    const ways = (from: Position) =>
      nodeEvents.filter((event: NodeEvent) => {
        const to = lifecycle[from][event];
        return typeof to === "string" && to !== from;
      });
    expect(ways("retired")).toEqual([]);
    expect(ways("revoked")).toEqual(["retire", "enrolled"]);
  });

  it("ID-09 keeps a position through what is stored of it", () => {
    for (const position of positions) {
      const revoked_at = isRevoked(position) ? new Date() : null;
      expect(positionOf({ status: statusOf(position), revoked_at })).toBe(position);
    }
    expect(new Set(positions.map(statusOf))).toEqual(new Set(nodeStatuses));
  });
});
