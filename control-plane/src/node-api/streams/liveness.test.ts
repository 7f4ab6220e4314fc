import { describe, expect, it } from "vitest";
import { createLiveness } from "./liveness.ts";

function make() {
  const seen = { pings: 0, answers: 0, at: 0 };
  const liveness = createLiveness({
    ping: () => {
      seen.pings += 1;
    },
    onAnswered: () => {
      seen.answers += 1;
    },
    now: () => seen.at,
  });
  return { seen, liveness };
}

describe("the liveness of a stream", () => {
  it("TASK-02 asks a silent agent once for a sign of life, and reports it", () => {
    const { seen, liveness } = make();
    expect(liveness.isHeard()).toBe(true);
    seen.at = 3_000;
    expect([liveness.isHeard(), liveness.isHeard()]).toEqual([false, false]);
    expect(seen).toMatchObject({ pings: 1, answers: 0 });
    liveness.heard();
    expect(liveness.isHeard()).toBe(true);
    liveness.heard();
    expect(seen).toMatchObject({ pings: 1, answers: 1 });
  });

  it("AGENT-06 expects a sign of life after something was sent, and gives up without one", () => {
    const { seen, liveness } = make();
    seen.at = 1_000_000;
    expect(liveness.check()).toBe(true);
    liveness.sent();
    seen.at += 10_000;
    liveness.sent();
    expect([liveness.check(), seen.pings]).toEqual([true, 0]);
    seen.at += 1;
    expect([liveness.check(), seen.pings]).toEqual([true, 1]);
    seen.at += 20_000;
    expect(liveness.check()).toBe(false);
    liveness.heard();
    expect(liveness.check()).toBe(true);
  });
});
