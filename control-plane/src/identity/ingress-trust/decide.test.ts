import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideTrust, judgeWays, NODE_API, REJECTION_HOLDS_MS, TRIED_WITHIN_MS, type Way } from "./decide.ts";

const NOW = new Date("2026-03-01T03:00:00Z");
const ago = (ms: number | null | undefined) =>
  ms === null || ms === undefined ? null : new Date(NOW.getTime() - ms);
type Ages = { accepted?: number | null; rejected?: number | null; unreachable?: number | null };
const way = ({ accepted, rejected, unreachable }: Ages, over: Partial<Way> = {}): Way => ({
  ...{ endpoint: NODE_API, url: "https://nodes.test:18442", address: "10.0.0.5", ingress: null },
  ...{ acceptedAt: ago(accepted), rejectedAt: ago(rejected), unreachableAt: ago(unreachable) },
  ...{ rejection: rejected == null ? null : "it said no", problem: unreachable == null ? null : "no answer" },
  ...over,
});
const other = { address: "10.0.0.6" };
const terminal = { endpoint: "node_terminal", url: "https://nodes.test:18443" };
const stateOf = (...ways: Way[]) => decideTrust(ways, NOW).state;

describe("whether ingresses accept what the CA signs", () => {
  it("ID-11 agrees when a canary arrived at the api last", () => {
    expect(stateOf(way({ accepted: 0 }))).toBe("agrees");
    expect(stateOf(way({ accepted: 0, unreachable: 15_000 }))).toBe("agrees");
    expect(stateOf(way({ accepted: 0, rejected: REJECTION_HOLDS_MS }))).toBe("agrees");
  });

  it("ID-11 is a mismatch at any of them, and names it", () => {
    const bad = way({ rejected: 0 }, other);
    expect(decideTrust([way({ accepted: 0 }), bad], NOW)).toEqual({
      state: "mismatch",
      at: [{ url: bad.url, address: "10.0.0.6", why: "it said no" }],
    });
    expect(stateOf(way({ accepted: 0 }), way({ rejected: 0 }, terminal))).toBe("mismatch");
  });

  it("ID-11 remains a mismatch until the same way accepts a canary, and for a while after: others may stand behind it", () => {
    expect(stateOf(way({ rejected: 60_000, unreachable: 0 }))).toBe("mismatch");
    expect(stateOf(way({ rejected: 240_000, unreachable: 0, accepted: 250_000 }))).toBe("mismatch");
    expect(stateOf(way({ rejected: REJECTION_HOLDS_MS - 1, accepted: 0 }))).toBe("mismatch");
    // By two replicas at the same time.
    expect(stateOf(way({ rejected: 180_000, accepted: 180_000, unreachable: 0 }))).toBe("mismatch");
  });

  it("ID-11 is not known where no canary arrives, and that is no mismatch", () => {
    expect(stateOf()).toBe("unknown");
    expect(decideTrust([way({ unreachable: 0, accepted: 15_000 })], NOW)).toEqual({
      state: "unknown",
      at: [{ url: "https://nodes.test:18442", address: "10.0.0.5", why: "no answer" }],
    });
    expect(stateOf(way({ accepted: 0 }, terminal))).toBe("unknown");
    // Of two addresses of one name, or of the api and the terminals, one is enough.
    expect(stateOf(way({ accepted: 0 }), way({ unreachable: 0 }, other))).toBe("agrees");
    expect(stateOf(way({ accepted: 0 }), way({ unreachable: 0 }, terminal))).toBe("agrees");
    expect(stateOf(way({ accepted: 0 }), way({ unreachable: 0 }, { url: "https://b.test" }))).toBe("unknown");
  });

  it("ID-11 forgets ways that nobody tries any more", () => {
    expect(stateOf(way({ accepted: 0 }), way({ rejected: TRIED_WITHIN_MS + 1 }, other))).toBe("agrees");
    expect(stateOf(way({ accepted: 0 }), way({ rejected: TRIED_WITHIN_MS }, other))).toBe("mismatch");
    expect(judgeWays([way({ accepted: TRIED_WITHIN_MS + 1 })], NOW)).toEqual([]);
  });

  it("ID-11 never stops because of what is only unreachable, and always because of the last word being a rejection", () => {
    const age = fc.option(fc.integer({ min: 0, max: TRIED_WITHIN_MS }), { nil: null });
    const ages = fc
      .record({ accepted: age, rejected: age, unreachable: age })
      .filter((one) => Object.values(one).some((ms) => ms !== null));
    const ways = fc.array(
      fc.tuple(ages, fc.constantFrom({}, other, terminal)).map(([one, over]) => way(one, over)),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(ways, (all) => {
        const { state } = decideTrust(all, NOW);
        if (all.every(({ rejectedAt }) => rejectedAt === null)) expect(state).not.toBe("mismatch");
        const isLast = ({ rejectedAt, acceptedAt }: Way) =>
          rejectedAt && (!acceptedAt || rejectedAt >= acceptedAt);
        if (all.some(isLast)) expect(state).toBe("mismatch");
        if (state === "agrees") expect(all.some(({ acceptedAt }) => acceptedAt !== null)).toBe(true);
      }),
    );
  });
});
