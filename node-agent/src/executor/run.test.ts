import { TaskFailed } from "@holdfast/tasks/executor";
import { describe, expect, it } from "vitest";
import { gate, testType } from "../../test/support/test-types.ts";
import { type LoadedType, runTask } from "./run.ts";

const host = {
  stateDir: "/nowhere",
  profile: { name: "p", version: 1, endpoints: {}, resolve: {}, ca_sha256: [] },
  capabilities: [],
  account: "me",
  terminals: {
    open: () => Promise.reject(new Error("there are no terminals in this test")),
    recover: async () => undefined,
  },
};
const begin = (type: LoadedType, onProgress: Parameters<typeof runTask>[0]["onProgress"] = () => undefined) =>
  runTask({ taskId: "t", type, params: {}, host, onProgress, graceMs: 20 });
const outcomeOf = async (type: LoadedType) => (await begin(type).ended).outcome;
/** Stops when it is cancelled, by throwing what a well-behaved type throws. */
const untilStopped = ({ signal }: { signal: AbortSignal }) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

describe("a running task", () => {
  it("TASK-07 succeeds with a result of its type's form", async () => {
    expect(await outcomeOf(testType(async () => ({ said: "done" })))).toEqual({
      status: "succeeded",
      result: { said: "done" },
    });
  });

  it.for([
    ["no result", undefined, "result_invalid"],
    ["another form", { said: 1 }, "result_invalid"],
    ["more than its form", { said: "x", more: 1 }, "result_invalid"],
    ["what JSON cannot hold", { said: 10n }, "result_invalid"],
    ["ten megabytes", { said: "x".repeat(10 * 1024 * 1024) }, "result_too_large"],
    ["more than its type may", { said: "x".repeat(4096) }, "result_too_large"],
  ] as const)("TASK-07 fails with %s", async ([, returned, code]) => {
    const outcome = await outcomeOf(testType(async () => returned));
    expect(outcome).toMatchObject({ status: "failed", failure: { code } });
  });

  it("TASK-07 fails with a code of its type and the catalogue's text, or its own words", async () => {
    const bare = testType(async () => {
      throw new TaskFailed("disk_on_fire");
    });
    expect(await outcomeOf(bare)).toEqual({
      status: "failed",
      failure: { code: "disk_on_fire", message: "The disk is on fire.", next_step: "Leave the building." },
    });
    const worded = testType(async ({ fail }) => {
      throw fail("disk_on_fire", "Both disks are.");
    });
    expect(await outcomeOf(worded)).toMatchObject({ failure: { message: "Both disks are." } });
    const unknown = testType(async () => {
      throw new TaskFailed("never_declared");
    });
    expect(await outcomeOf(unknown)).toMatchObject({ failure: { code: "executor_failed" } });
  });

  it("AGENT-10 fails with what was thrown, without the secrets in it", async () => {
    const secret = `hft_${"s".repeat(43)}`;
    const outcome = await outcomeOf(
      testType(async () => {
        throw new Error(`cannot open with ${secret}`);
      }),
    );
    expect(outcome).toMatchObject({ status: "failed", failure: { code: "executor_failed" } });
    expect(JSON.stringify(outcome)).toContain("cannot open with hft_[redacted]");
    expect(JSON.stringify(await outcomeOf(testType(async () => ({ said: secret }))))).not.toContain(secret);
  });

  it("TASK-09 ends as cancelled when it is cancelled, and only the first request counts", async () => {
    const task = begin(testType(untilStopped));
    expect(task.stop("cancelled")).toBe(true);
    expect(task.stop("cancelled")).toBe(false);
    expect((await task.ended).outcome).toMatchObject({ status: "cancelled", failure: { code: "task_cancelled" } });
    expect(task.stop("cancelled")).toBe(false);
  });

  it("TASK-09 keeps the result of work that was done before it could be stopped", async () => {
    const door = gate();
    const task = begin(
      testType(async () => {
        await door.passed;
        return { said: "too late to stop" };
      }),
    );
    task.stop("cancelled");
    door.open();
    expect((await task.ended).outcome).toMatchObject({ status: "succeeded" });
  });

  it("TASK-07 is stopped when its time is over", async () => {
    const outcome = await outcomeOf(testType(untilStopped, { timeoutSeconds: 0.01 }));
    expect(outcome).toMatchObject({ status: "failed", failure: { code: "task_timed_out" } });
  });

  it("TASK-07 is reported after a grace even if its type never stops", async () => {
    const outcome = await outcomeOf(testType(() => new Promise(() => undefined), { timeoutSeconds: 0.01 }));
    expect(outcome).toMatchObject({ status: "failed", failure: { code: "task_timed_out" } });
  });

  it("TASK-09 tells its phases with their times, and leaves out progress of a wrong form", async () => {
    const reported: unknown[] = [];
    const task = begin(
      testType(async ({ progress }) => {
        progress("first", { percent: 1 });
        progress("second", { percent: "half" } as never);
        progress("first");
        return { said: "done" };
      }),
      ({ phase, data }) => reported.push([phase, data]),
    );
    const { timings } = await task.ended;
    expect(reported).toEqual([
      ["first", { percent: 1 }],
      ["second", undefined],
      ["first", undefined],
    ]);
    expect(timings).toEqual({ first: expect.any(Number), second: expect.any(Number) });
  });

  it("TASK-09 says nothing more after its end", async () => {
    const reported: string[] = [];
    let late: (() => void) | undefined;
    const task = begin(
      testType(async ({ progress }) => {
        late = () => progress("afterwards");
        return { said: "done" };
      }),
      ({ phase }) => reported.push(phase),
    );
    await task.ended;
    late?.();
    expect(reported).toEqual([]);
  });

  it("TASK-09 has its work elsewhere ended by its type when it is cancelled, once and besides the signal", async () => {
    const calls: unknown[] = [];
    const ended = gate();
    const type = testType(
      async () => {
        await ended.passed;
        throw new Error("the process was ended");
      },
      {},
      {
        cancel: async (task) => {
          calls.push(task);
          ended.open();
        },
      },
    );
    const task = begin(type);
    task.stop("cancelled");
    task.stop("timed_out");
    expect((await task.ended).outcome).toMatchObject({ status: "cancelled" });
    expect(calls).toEqual([expect.objectContaining({ taskId: "t", params: {}, host, reason: "cancelled" })]);
  });

  it("TASK-07 has its work elsewhere ended by its type when its time is over, and waits until that is done", async () => {
    const done: string[] = [];
    const cancel = async ({ reason }: { reason: string }) => {
      await new Promise((resolve) => setImmediate(resolve));
      done.push(reason);
    };
    const task = begin(testType(untilStopped, { timeoutSeconds: 0.01 }, { cancel }));
    const { outcome } = await task.ended;
    expect(outcome).toMatchObject({ status: "failed", failure: { code: "task_timed_out" } });
    expect(done).toEqual(["timed_out"]);
  });

  it("TASK-09 reports that its work elsewhere could not be ended", async () => {
    const cancel = () => Promise.reject(new Error("the process does not end"));
    const task = begin(testType(untilStopped, {}, { cancel }));
    task.stop("cancelled");
    expect((await task.ended).outcome).toMatchObject({
      status: "cancelled",
      failure: { message: expect.stringContaining("the process does not end") },
    });
  });

  it("TASK-09 keeps its result, also when its cancel never ends", async () => {
    const door = gate();
    const run = async () => {
      await door.passed;
      return { said: "done" };
    };
    const task = begin(testType(run, {}, { cancel: () => new Promise(() => undefined) }));
    task.stop("cancelled");
    door.open();
    expect((await task.ended).outcome).toMatchObject({ status: "succeeded" });
  });

  it("TASK-05 ends nothing elsewhere when only the agent stops", async () => {
    const calls: unknown[] = [];
    const task = begin(testType(untilStopped, {}, { cancel: async (one) => void calls.push(one) }));
    task.stop("agent_stops");
    expect((await task.ended).outcome).toMatchObject({ status: "interrupted" });
    expect(calls).toEqual([]);
  });
});
