import { executionCloseCodes } from "@holdfast/contracts/execution/limits";
import { describe, expect, it } from "vitest";
import { attemptAfter, delayAfter, type Ended, explainEnd } from "./pacing.ts";

const closed = (code: number): Ended => ({ kind: "closed", code, reason: "" });
const refused = (status: number): Ended => ({ kind: "refused", status, text: "" });
const unreachable: Ended = { kind: "unreachable", message: "connect ECONNREFUSED" };
const silent: Ended = { kind: "silent", ms: 45_000 };
const otherAgent: Ended = { kind: "other_agent", message: "the gateway takes this agent for another" };

const tokenRefused = [refused(401), refused(403), closed(executionCloseCodes.revoked), otherAgent];
const others = [unreachable, silent, refused(404), refused(503), closed(1006), closed(executionCloseCodes.cycle)];

describe("after the end of a connection", () => {
  it.for(tokenRefused)("EXEC-07 a refused token is tried again slowly, never fast: %j", (ended) => {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      expect(delayAfter(ended, attempt, 0)).toBeGreaterThanOrEqual(30_000);
      expect(delayAfter(ended, attempt, 0.999)).toBeLessThanOrEqual(600_000);
    }
    expect(attemptAfter(ended, 3, true)).toBe(4);
    const { nextStep } = explainEnd(ended);
    expect(nextStep).toMatch(/<organization id>\.<secret>/);
    expect(nextStep).toMatch(/not been revoked/);
  });

  it.for(others)("EXEC-07 the pause grows until a gateway has accepted the agent: %j", (ended) => {
    const delays = [0, 1, 2, 3, 20].map((attempt) => delayAfter(ended, attempt, 0));
    expect(delays).toEqual([250, 500, 1000, 2000, 15_000]);
    expect(delayAfter(ended, 20, 0.99999)).toBe(30_000);
    expect(attemptAfter(ended, 3, false)).toBe(4);
    expect(attemptAfter(ended, 3, true)).toBe(0);
  });

  it("EXEC-07 a gateway that accepts the agent and then does not understand it is not asked ever faster", () => {
    expect(attemptAfter(closed(executionCloseCodes.malformed), 3, true)).toBe(4);
  });

  it.for([...tokenRefused, ...others, closed(1001), closed(4400), closed(4408)])(
    "says what happened: %j",
    (ended) => {
      expect(explainEnd(ended).message).toMatch(/^(the|no|nothing) .{10,}/);
    },
  );
});
