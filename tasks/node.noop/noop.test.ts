import { describe, expect, it } from "vitest";
import { runTask } from "../../testkit/tasks/run-task.ts";
import { loadCheckedType } from "../registry.ts";

describe("a no-op", () => {
  it("DIAG-02 returns its input", async () => {
    expect((await runTask("node.noop", { echo: "hello" })).result).toEqual({ echo: "hello" });
    expect((await runTask("node.noop", {})).result).toEqual({ echo: null });
  });

  it("TASK-09 tells progress while it holds", async () => {
    const { phases, progress } = await runTask("node.noop", { hold_ms: 10 });
    expect(new Set(phases)).toEqual(new Set(["holding"]));
    expect(progress.at(0)).toEqual({ percent: 0 });
    expect(progress.at(-1)).toEqual({ percent: 90 });
  });

  it("TASK-09 stops when it is cancelled", async () => {
    const cancel = new AbortController();
    const run = runTask(
      "node.noop",
      { hold_ms: 60_000 },
      { signal: cancel.signal, onPhase: () => cancel.abort() },
    );
    await expect(run).rejects.toThrow("aborted");
  });

  it.for([{ echo: 1 }, { echo: "x".repeat(201) }, { hold_ms: -1 }, { hold_ms: 60_001 }, { command: "ls" }])(
    "TASK-07 refuses %o",
    async (params) => {
      expect((await loadCheckedType("node.noop"))?.params.safeParse(params).success).toBe(false);
    },
  );
});
