import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { certainSkewSeconds, clockSkew } from "./clock-skew.ts";

describe("clock skew", () => {
  it("ID-14 is the server's clock minus ours, from the middle of the round trip", () => {
    expect(clockSkew({ sentAt: 1_000, receivedAt: 1_200, serverTime: 61_100 })).toEqual({
      offset: 60_000,
      uncertainty: 100,
    });
  });

  it("ID-14 never takes a slow network for a wrong clock", () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.nat(60_000), fc.nat(60_000), (sentAt, there, back) => {
        const skew = clockSkew({ sentAt, receivedAt: sentAt + there + back, serverTime: sentAt + there });
        expect(certainSkewSeconds(skew)).toBeCloseTo(0, 9);
      }),
    );
  });

  it.for([600, -600])("ID-14 sees a clock that is %d seconds off", (seconds) => {
    const skew = clockSkew({ sentAt: 0, receivedAt: 50, serverTime: 25 + seconds * 1000 });
    expect(certainSkewSeconds(skew)).toBeCloseTo(seconds, 1);
  });
});
