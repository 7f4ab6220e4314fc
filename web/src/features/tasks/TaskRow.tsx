// One task of a node: its state in a line, and on demand all that one wants to know first.

import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { Prose } from "../../design/layout/Prose.tsx";
import { DetailsFooter, DisclosureRow } from "../../design/lists/DisclosureRow.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { CancelTask } from "./CancelTask.tsx";
import { PhaseTimings } from "./PhaseTimings.tsx";
import { TaskLink } from "./TaskLink.tsx";
import { TaskOutcome } from "./TaskOutcome.tsx";
import { TaskProgress, Took } from "./TaskProgress.tsx";
import { hasEnded, taskMark } from "./task-marks.ts";

type TaskRowProps = { task: Task; opened: boolean; onToggle: () => void };

export function TaskRow({ task, opened, onToggle }: TaskRowProps) {
  const { state, word } = taskMark(task);
  const running = !hasEnded(task);
  return (
    <DisclosureRow
      opened={opened}
      onToggle={onToggle}
      summary={
        <>
          <span className="font-mono text-sm">{task.type}</span>
          <StatusMark state={state}>{word}</StatusMark>
        </>
      }
      note={
        <>
          <Took task={task} />
          {task.finished_at && task.dispatched_at ? ", " : ""}
          <When at={task.created_at} />
        </>
      }
      actions={running && <CancelTask task={task} />}
      details={() => (
        <>
          <TaskOutcome task={task} />
          <PhaseTimings timings={task.timings} />
          <DetailsFooter correlationId={task.correlation_id}>
            <TaskLink taskId={task.id}>Open task</TaskLink>
          </DetailsFooter>
        </>
      )}
    >
      {running && (
        <div className="mt-1.5 sm:ml-4.5">
          <TaskProgress task={task} />
        </div>
      )}
      {!running && !opened && task.failure && task.status !== "cancelled" && (
        <p className="mt-0.5 text-sm text-ink-muted sm:ml-4.5">
          <Prose text={task.failure.message} />
        </p>
      )}
    </DisclosureRow>
  );
}
