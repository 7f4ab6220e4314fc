import { taskStatuses } from "@holdfast/contracts/endpoints/tasks";
import { describe, expect, it } from "vitest";
import { replayRefusal } from "./replay.ts";

const task = {
  id: "id-1",
  type: "node.noop",
  idempotent: true,
  lease_over: false,
  replayed_by: null,
  failure: null,
};
const type = { idempotent: true, byHand: true };

describe("a replay", () => {
  it("DRIFT-04 is for tasks that expired, lost their lease, or were interrupted", () => {
    const allowed = taskStatuses.filter((status) => !replayRefusal({ ...task, status }, type));
    expect(allowed).toEqual(["expired"]);
    expect(replayRefusal({ ...task, status: "dispatched", lease_over: true }, type)).toBeUndefined();
    const failed = (code: string) => replayRefusal({ ...task, status: "failed", failure: { code } }, type);
    expect(failed("task_interrupted")).toBeUndefined();
    expect(failed("task_expired")).toBeUndefined();
    expect(failed("task_timed_out")?.message).toBe("The task failed with a result.");
  });

  it("TASK-04 is refused for every type that must not run twice, whatever became of the task", () => {
    for (const status of taskStatuses) {
      const gone = { ...task, status, lease_over: true, failure: { code: "task_interrupted" } };
      expect(replayRefusal({ ...gone, idempotent: false }, type)?.message).toContain("must not run twice");
      expect(replayRefusal(gone, { ...type, idempotent: false })?.message).toContain("must not run twice");
      expect(replayRefusal({ ...gone, idempotent: false }, undefined)?.message).toContain("must not run twice");
    }
  });

  it("TASK-05 is refused for types with secrets, which are gone", () => {
    const refusal = replayRefusal({ ...task, status: "expired" }, { ...type, secrets: ["key"] });
    expect(refusal?.message).toContain("secrets, which were erased");
  });

  it("DRIFT-04 is refused for what the control plane repeats itself, and for what was replayed", () => {
    expect(replayRefusal({ ...task, status: "expired" }, { ...type, byHand: false })?.message).toContain("itself");
    expect(replayRefusal({ ...task, status: "expired", replayed_by: "id-2" }, type)?.nextStep).toContain("id-2");
  });
});
