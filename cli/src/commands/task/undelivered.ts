// Whether a task has a result that its node cannot deliver. Nobody knows when that arrives: no reason to keep a person waiting. The
// task itself is not affected.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { Refusal } from "../../failure.ts";

export function undelivered(
  { id, status, correlation_id }: Pick<Task, "id" | "status" | "correlation_id">,
  attention: NodeDetail["attention"],
): Refusal | undefined {
  const item = attention.find((one) => one.code === "task_result_failed" && one.correlation_id === correlation_id);
  if (status !== "dispatched" || !item) return undefined;
  return new Refusal(item.code, {
    message: item.message,
    nextStep: `Nothing is lost: the agent delivers the result when the server responds again. See it then: holdfast task show ${id}`,
    details: { task: id, status, hop: item.hop, correlation_id },
  });
}
