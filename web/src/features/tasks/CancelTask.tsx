// Cancels a task: immediately while it is queued, otherwise as soon as the node receives the request.

import { cancelTask, type Task } from "@holdfast/contracts/endpoints/tasks";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { hasEnded } from "./task-marks.ts";

export function CancelTask({ task }: { task: Task }) {
  const { may } = useActing();
  const cancel = useChange({ send: (call) => call(cancelTask, { params: { task_id: task.id } }) });
  if (hasEnded(task) || !may("tasks:write")) return null;
  return (
    <>
      <Button
        onClick={() => cancel.mutate("")}
        busy={cancel.isPending}
        disabled={task.cancel_requested_at !== null}
      >
        {task.cancel_requested_at ? "Cancelling…" : "Cancel"}
        <span className="sr-only"> {task.type}</span>
      </Button>
      {cancel.error && <ErrorNotice key={cancel.submittedAt} error={cancel.error} />}
    </>
  );
}
