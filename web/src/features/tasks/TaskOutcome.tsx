// What came of a task: its typed result, or why there is none and what to do now.

import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Structured } from "../../design/values/Structured.tsx";

export function TaskOutcome({ task }: { task: Task }) {
  if (task.failure) {
    const { code, message, next_step } = task.failure;
    return (
      <Notice state={task.status === "cancelled" ? "unknown" : "failed"} title={message}>
        <p>
          <Prose text={next_step} />
        </p>
        <p className="mt-1 font-mono text-sm text-ink-muted">{code}</p>
      </Notice>
    );
  }
  if (task.status === "completed") return <Structured value={task.result} label="result" />;
  return null;
}
