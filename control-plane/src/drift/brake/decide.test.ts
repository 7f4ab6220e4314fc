import { brakeReasons } from "@holdfast/contracts/endpoints/fleet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultBrakePolicy as policy } from "../policy.ts";
import { decideBrake, type FleetFacts } from "./decide.ts";
import { brakeMessage } from "./words.ts";

const NOW = 10_000_000;
const MINUTE = 60_000;
const fine: FleetFacts = { now: NOW, nodes: 20, lost: 0, outage: null, caMismatch: false };
const why = (over: Partial<FleetFacts>) => {
  const brake = decideBrake({ ...fine, ...over }, policy);
  return brake.braked ? brake.why : null;
};

describe("the brake", () => {
  it("DRIFT-13 holds when more than half of the fleet, and at least five nodes, are lost at once", () => {
    expect(why({ lost: 10 })).toBeNull();
    expect(why({ lost: 11 })).toBe("fleet_lost");
    expect(why({ nodes: 5, lost: 4 })).toBeNull();
    expect(why({ nodes: 5, lost: 5 })).toBe("fleet_lost");
    expect(why({ nodes: 1, lost: 1 })).toBeNull();
  });

  it("DRIFT-13 holds during an outage of the api, and until nodes had time to return", () => {
    expect(why({ outage: { from: NOW - MINUTE, to: null } })).toBe("control_plane_outage");
    expect(why({ outage: { from: NOW - 5 * MINUTE, to: NOW - MINUTE } })).toBe("control_plane_outage");
    expect(why({ outage: { from: NOW - 9 * MINUTE, to: NOW - policy.returnAfterOutageMs } })).toBeNull();
    // A restart.
    expect(why({ outage: { from: NOW - MINUTE, to: NOW - MINUTE + policy.leastOutageMs - 1 } })).toBeNull();
  });

  it("ID-11 holds while an ingress rejects what our CA signs", () => {
    expect(why({ caMismatch: true })).toBe("ca_mismatch");
    expect(why({ caMismatch: true, lost: 20 })).toBe("ca_mismatch");
  });

  it("DRIFT-13 never holds without one of its reasons, and more lost nodes never release it", () => {
    const facts = fc.record({
      ...{ now: fc.constant(NOW), nodes: fc.nat(100), lost: fc.nat(100), caMismatch: fc.boolean() },
      outage: fc.option(fc.record({ from: fc.nat(NOW), to: fc.option(fc.nat(NOW)) }), { nil: null }),
    });
    fc.assert(
      fc.property(facts, (one) => {
        const { braked } = decideBrake(one, policy);
        if (one.lost < policy.leastOfFleet && !one.outage && !one.caMismatch) expect(braked).toBe(false);
        if (braked) expect(decideBrake({ ...one, lost: one.lost + 1 }, policy).braked).toBe(true);
      }),
    );
  });

  it("says why without a number", () => {
    for (const reason of brakeReasons)
      expect(brakeMessage(reason)).toMatch(/^The control plane is suspected, because \D+\.$/);
  });
});
