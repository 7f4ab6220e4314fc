// The current phase of a task, its progress and its running time.

import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { duration, tookMs } from "../../design/values/time.ts";
import { useNow } from "../../design/values/use-now.ts";
import { hasEnded, percentOf, ranMs } from "./task-marks.ts";

export function TaskProgress({ task }: { task: Task }) {
  if (hasEnded(task)) return null;
  if (task.status === "queued") return <p className="text-sm text-ink-muted">Waiting for the node to claim it.</p>;
  const percent = percentOf(task.progress);
  return (
    <div>
      <p className="flex flex-wrap justify-between gap-x-4 text-sm">
        <span>{task.phase ?? <span className="text-ink-muted">started</span>}</span>
        <span className="text-ink-muted tabular-nums">
          {percent !== undefined && `${Math.round(percent)} %, `}
          <Running task={task} />
        </span>
      </p>
      {percent !== undefined && (
        <div
          role="progressbar"
          aria-label={`Progress of ${task.type}`}
          aria-valuenow={Math.round(percent)}
          aria-valuemin={0}
          aria-valuemax={100}
          className="mt-1 h-1.5 overflow-hidden rounded-sm bg-sunken"
        >
          <div className="h-full bg-kelp transition-[width] duration-300" style={{ width: `${percent}%` }} />
        </div>
      )}
    </div>
  );
}

function Running({ task }: { task: Task }) {
  const now = useNow("seconds");
  return <>for {duration(Math.floor((ranMs(task, now) ?? 0) / 1_000))}</>;
}

/** How long it took, once it has ended. */
export function Took({ task }: { task: Task }) {
  const ran = ranMs(task, 0);
  return task.finished_at && ran !== undefined ? <>took {tookMs(ran)}</> : null;
}
