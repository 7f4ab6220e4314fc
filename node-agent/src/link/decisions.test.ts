import { HEARTBEAT_SECONDS } from "@holdfast/contracts/node/limits";
import { diagnosticReasonNames } from "@holdfast/contracts/reasons/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  afterFailure,
  afterHeartbeat,
  afterHeldPoll,
  afterWait,
  atStart,
  type LinkState,
  nextStep,
  retryDelay,
} from "./decisions.ts";

const failure = (reason: (typeof diagnosticReasonNames)[number], retryAfterMs?: number) => ({
  reason,
  retryAfterMs,
});
const chances = fc.double({ min: 0, max: 0.999999, noNaN: true });

describe("what the link does next", () => {
  it("AGENT-06 begins with a heartbeat, then polls until the next one is due", () => {
    expect(nextStep(atStart, 1_000_000)).toEqual({ do: "heartbeat" });
    const beaten = afterHeartbeat(atStart, 1_000_000, 1);
    expect(nextStep(beaten, 1_000_050)).toEqual({ do: "wait", seconds: 55 });
    expect(nextStep(beaten, 1_050_000)).toEqual({ do: "wait", seconds: 10 });
    expect(nextStep(beaten, 1_059_600)).toEqual({ do: "heartbeat" });
  });

  it.for([1, 2, 3, 20])("AGENT-06 polls between two heartbeats that are %d s apart", (seconds) => {
    const state = afterHeartbeat({ ...atStart, heartbeatMs: seconds * 1000, heartbeatDueAt: 1 }, 5_000, 0.5);
    expect(nextStep(state, 5_030)).toEqual({ do: "wait", seconds });
    expect(nextStep(state, 5_030 + seconds * 1000)).toEqual({ do: "heartbeat" });
  });

  it("AGENT-06 lets no more than 60 seconds pass between heartbeats, and the half that a poll is rounded by", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 30_000 }), fc.boolean()), { maxLength: 60 }),
        chances,
        (waits, chance) => {
          let state: LinkState = atStart;
          let now = 1_000_000;
          let last: number | undefined;
          for (const [answerAfter, empty] of waits) {
            const step = nextStep(state, now);
            if (step.do === "heartbeat") {
              if (last !== undefined) expect(now - last).toBeLessThanOrEqual(HEARTBEAT_SECONDS * 1000 + 500);
              last = now;
              state = afterHeartbeat(state, now, chance);
            } else if (step.do === "wait") {
              const requestedMs = step.seconds * 1000;
              const tookMs = Math.min(answerAfter, requestedMs);
              now += tookMs;
              state = afterWait(state, { empty, requestedMs, tookMs }, now);
            } else now += step.ms;
          }
        },
      ),
    );
  });

  it("AGENT-06 spreads the heartbeats of a fleet that came back together, and then keeps to the usual time", () => {
    const chanceOf = [0, 0.25, 0.5, 0.75, 1];
    const first = chanceOf.map((chance) => afterHeartbeat(atStart, 1_000, chance));
    expect(first.map(({ heartbeatDueAt }) => heartbeatDueAt)).toEqual([7_000, 20_500, 34_000, 47_500, 61_000]);
    const second = first.map((state) => afterHeartbeat(state, state.heartbeatDueAt, 0));
    second.forEach(({ heartbeatDueAt }, index) => {
      expect(heartbeatDueAt - (first[index]?.heartbeatDueAt ?? 0)).toBe(60_000);
    });
  });

  it("TASK-02 polls for a shorter time where a proxy cuts long polls, and never for longer than before", () => {
    expect(afterHeldPoll(atStart, 9_999)).toBe(atStart);
    const cut = afterHeldPoll(atStart, 30_000);
    expect(nextStep(afterHeartbeat({ ...cut, heartbeatDueAt: 1 }, 1_000, 0), 1_000)).toEqual({
      do: "wait",
      seconds: 22,
    });
    expect(afterHeldPoll(cut, 40_000)).toEqual(cut);
  });

  it("AGENT-02 waits before it tries again, and then begins with a heartbeat", () => {
    const failed = afterFailure(afterHeartbeat(atStart, 0, 1), failure("api_unreachable"), 5_000, 0.5);
    const step = nextStep(failed, 5_000);
    expect(step.do).toBe("pause");
    expect(nextStep(failed, failed.pausedUntil)).toEqual({ do: "heartbeat" });
    expect(afterHeartbeat(failed, 9_000, 0.5)).toMatchObject({ failures: 0, pausedUntil: 0 });
  });

  it("AGENT-02 backs off to at most half a minute, with jitter", () => {
    const delays = Array.from({ length: 12 }, (_, failures) =>
      retryDelay({ ...failure("api_unreachable"), failures }, 0.999999),
    );
    expect(delays[0]).toBe(500);
    expect(delays).toEqual([...delays].sort((a, b) => a - b));
    expect(delays.at(-1)).toBe(30_000);
    expect(retryDelay({ ...failure("api_unreachable"), failures: 11 }, 0)).toBe(15_000);
  });

  it("AGENT-02 slows down when told to: at least 5 seconds, and as long as the server asks", () => {
    fc.assert(
      fc.property(
        chances,
        fc.nat(50),
        fc.option(fc.nat(1_000_000), { nil: undefined }),
        (random, failures, retryAfterMs) => {
          const delay = retryDelay({ ...failure("edge_rate_limited", retryAfterMs), failures }, random);
          expect(delay).toBeGreaterThanOrEqual(5_000);
          expect(delay).toBeGreaterThanOrEqual(Math.min(retryAfterMs ?? 0, 300_000));
          expect(delay).toBeLessThanOrEqual(330_000);
        },
      ),
    );
  });

  it("AGENT-02 keeps knocking within a minute whatever the reason", () => {
    fc.assert(
      fc.property(fc.constantFrom(...diagnosticReasonNames), chances, fc.nat(1000), (reason, random, failures) => {
        const delay = retryDelay({ ...failure(reason), failures }, random);
        expect(delay).toBeGreaterThanOrEqual(250);
        expect(delay).toBeLessThanOrEqual(60_000);
      }),
    );
  });

  it("AGENT-02 does not run in circles when polls come back at once with nothing", () => {
    // At once, and over a slow way or from a busy server.
    for (const tookMs of [2, 3_000]) {
      let state = afterHeartbeat(atStart, 0, 1);
      const early = { empty: true, requestedMs: 19_000, tookMs };
      for (let poll = 0; poll < 10; poll += 1) state = afterWait(state, early, 1_000);
      expect(nextStep(state, 1_000)).toEqual({ do: "pause", ms: 5_000 });
      expect(afterWait(state, { ...early, empty: false }, 6_000).emptyHanded).toBe(0);
      expect(afterWait(state, { ...early, tookMs: 18_900 }, 6_000).emptyHanded).toBe(0);
    }
  });
});
