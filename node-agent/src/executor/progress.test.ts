import { describe, expect, it, vi } from "vitest";
import { createProgressReporter } from "./progress.ts";

const report = (phase: string) => ({ generation: 1, phase, timings: {} });

describe("progress reports", () => {
  it("TASK-09 are sent at most once in their time, and then only the newest", async () => {
    vi.useFakeTimers();
    const sent: string[] = [];
    const reporter = createProgressReporter({
      send: async ({ phase }) => {
        sent.push(phase);
        return { cancel: false };
      },
      onCancel: () => undefined,
    });
    for (const phase of ["a", "b", "c"]) reporter.report(report(phase));
    await vi.advanceTimersByTimeAsync(249);
    expect(sent).toEqual(["a"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent).toEqual(["a", "c"]);
    reporter.report(report("d"));
    reporter.end();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(sent).toEqual(["a", "c"]);
    vi.useRealTimers();
  });

  it("TASK-09 may be lost; their answers may ask to stop", async () => {
    vi.useFakeTimers();
    let answers = 0;
    let cancelled = 0;
    const reporter = createProgressReporter({
      send: async () => {
        answers += 1;
        if (answers === 1) throw new Error("lost");
        return { cancel: true };
      },
      onCancel: () => {
        cancelled += 1;
      },
    });
    reporter.report(report("a"));
    await vi.advanceTimersByTimeAsync(250);
    reporter.report(report("b"));
    await vi.advanceTimersByTimeAsync(250);
    expect({ answers, cancelled }).toEqual({ answers: 2, cancelled: 1 });
    reporter.end();
    vi.useRealTimers();
  });
});
