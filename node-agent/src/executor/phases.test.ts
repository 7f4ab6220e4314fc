import { describe, expect, it } from "vitest";
import { measurePhases } from "./phases.ts";

describe("phases", () => {
  it("TASK-09 end where the next begins, and add up when entered again", () => {
    let now = 0;
    const phases = measurePhases(() => now);
    now = 0.4;
    phases.enter("fetch");
    now = 10;
    phases.enter("unpack");
    now = 30;
    phases.enter("fetch");
    now = 35;
    expect(phases.timings()).toEqual({ fetch: 14.6, unpack: 20 });
    expect(phases.current).toBe("fetch");
  });

  it("TASK-09 without a name is the run as a whole, and what came before the first", () => {
    let now = 0;
    const phases = measurePhases(() => now);
    now = 7;
    expect(phases.timings()).toEqual({ run: 7 });
    phases.enter("x".repeat(100));
    now = 8;
    expect(phases.timings()).toEqual({ run: 7, ["x".repeat(64)]: 1 });
  });
});
