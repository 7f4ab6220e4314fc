import { describe, expect, it } from "vitest";
import { measurePhases } from "./phases.ts";

describe("phases", () => {
  it("TASK-09 end where the next begins, and add up when entered again", () => {
    let now = 0;
    const phases = measurePhases(() => now);
    phases.enter("fetch");
    now = 10;
    phases.enter("unpack");
    now = 30;
    phases.enter("fetch");
    now = 35;
    expect(phases.timings()).toEqual({ fetch: 15, unpack: 20 });
    expect(phases.current).toBe("fetch");
  });

  it("TASK-09 without a name are one, the run", () => {
    let now = 0;
    const phases = measurePhases(() => now);
    now = 7;
    expect(phases.timings()).toEqual({ run: 7 });
    expect(phases.current).toBe("run");
  });

  it.each([0, 0.4, 1, 7, 60_000])("TASK-09 are those that were reported, %d ms after the start", (late) => {
    let now = 0;
    const phases = measurePhases(() => now);
    now = late;
    phases.enter("x".repeat(100));
    now = late + 8;
    expect(phases.timings()).toEqual({ ["x".repeat(64)]: late + 8 });
  });
});
