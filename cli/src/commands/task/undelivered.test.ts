import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { describe, expect, it } from "vitest";
import { undelivered } from "./undelivered.ts";

const item = {
  ...{ code: "task_result_failed", message: "The agent could not deliver it.", hop: "latest_operation" },
  correlation_id: "ours",
};
const attention = (changes: Partial<typeof item> = {}) =>
  [
    { ...item, code: "link_slow" },
    { ...item, ...changes },
  ] as unknown as NodeDetail["attention"];
const task = { id: "task-1", status: "dispatched", correlation_id: "ours" } as const;

describe("a result that the node cannot deliver", () => {
  it("CHAOS-02 ends the waiting for its own task, and names hop, id and what to do", () => {
    expect(undelivered(task, attention())).toMatchObject({
      ...{ code: "task_result_failed", message: item.message },
      nextStep: expect.stringMatching(/holdfast task show task-1$/),
      details: { task: "task-1", hop: "latest_operation", correlation_id: "ours" },
    });
  });

  it("CHAOS-02 ends it for no other task, no other problem, and not once the task has ended", () => {
    expect(undelivered(task, attention({ correlation_id: "another's" }))).toBeUndefined();
    expect(undelivered(task, attention({ code: "task_refused" }))).toBeUndefined();
    expect(undelivered({ ...task, status: "completed" }, attention())).toBeUndefined();
    expect(undelivered(task, [])).toBeUndefined();
  });
});
