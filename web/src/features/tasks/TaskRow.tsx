// One task of a node: its state in a line, and on demand all that one wants to know first.

import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { Link } from "@tanstack/react-router";
import { useId } from "react";
import { CopyableId } from "../../design/Copy.tsx";
import { classes } from "../../design/classes.ts";
import { Icon } from "../../design/Icon.tsx";
import { Prose } from "../../design/Prose.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { When } from "../../design/When.tsx";
import { CancelTask } from "./CancelTask.tsx";
import { PhaseTimings } from "./PhaseTimings.tsx";
import { TaskOutcome } from "./TaskOutcome.tsx";
import { TaskProgress, Took } from "./TaskProgress.tsx";
import { hasEnded, taskMark } from "./task-marks.ts";

type TaskRowProps = { task: Task; opened: boolean; onToggle: () => void };

export function TaskRow({ task, opened, onToggle }: TaskRowProps) {
  const id = useId();
  const { state, word } = taskMark(task);
  const running = !hasEnded(task);
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <button
          type="button"
          onClick={onToggle}
          aria-expanded={opened}
          aria-controls={id}
          className="-ml-1.5 flex min-w-0 flex-1 items-center gap-2 rounded-sm text-left"
        >
          <Icon
            name="chevron"
            className={classes("size-4 shrink-0 text-ink-muted transition-transform", !opened && "-rotate-90")}
          />
          <span className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            <span className="font-mono text-sm">{task.type}</span>
            <StatusMark state={state}>{word}</StatusMark>
            <span className="sr-only">: details</span>
          </span>
        </button>
        <span className="text-sm text-ink-muted max-sm:order-last max-sm:ml-4.5 max-sm:basis-full">
          <Took task={task} />
          {task.finished_at && task.dispatched_at ? ", " : ""}
          <When at={task.created_at} />
        </span>
        {running && <CancelTask task={task} />}
      </div>
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
      <div id={id} hidden={!opened} className="mt-3 space-y-3 sm:ml-4.5">
        {opened && (
          <>
            <TaskOutcome task={task} />
            <PhaseTimings timings={task.timings} />
            <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-1 text-sm text-ink-muted">
              <span className="flex flex-wrap items-center gap-x-1.5">
                Correlation id <CopyableId id={task.correlation_id} label="Copy correlation id" />
              </span>
              <Link
                to="/tasks/$taskId"
                params={{ taskId: task.id }}
                className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
              >
                Open task
                <Icon name="arrow" className="size-3.5" />
              </Link>
            </div>
          </>
        )}
      </div>
    </li>
  );
}
