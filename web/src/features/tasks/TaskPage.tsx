// One task, everything about it, as it runs.

import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Structured } from "../../design/values/Structured.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { useNode } from "../nodes/queries.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { TraceLink } from "../trace/TraceLink.tsx";
import { CancelTask } from "./CancelTask.tsx";
import { PhaseTimings } from "./PhaseTimings.tsx";
import { useTask } from "./queries.ts";
import { TaskOutcome } from "./TaskOutcome.tsx";
import { TaskProgress, Took } from "./TaskProgress.tsx";
import { hasEnded, taskMark } from "./task-marks.ts";

const route = getRouteApi("/signed-in/tasks/$taskId");

export function TaskPage() {
  const { taskId } = route.useParams();
  const task = useTask(taskId);
  if (task.data) return <Shown task={task.data} />;
  return (
    <>
      <PageHeader title="Task" />
      <NotLoaded
        noun="task"
        query={task}
        explanation="It does not exist, is older than the retained history, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ task }: { task: Task }) {
  const { state, word } = taskMark(task);
  const timed = Object.keys(task.timings).length > 0;
  return (
    <>
      <PageHeader title={task.type} above={<OnNode nodeId={task.node_id} />} actions={<CancelTask task={task} />}>
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1" role="status">
          <StatusMark state={state}>{word}</StatusMark>
          <Took task={task} />
          <LiveMark />
        </span>
      </PageHeader>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          <Card title={hasEnded(task) ? "Result" : "Progress"}>
            <div className="space-y-4 px-5 py-4">
              <TaskProgress task={task} />
              <TaskOutcome task={task} />
              {hasEnded(task) && !task.failure && task.status !== "completed" && (
                <p className="text-ink-muted">The task ended without a result.</p>
              )}
            </div>
          </Card>
          {timed && (
            <Card title="Time per phase">
              <div className="px-5 py-4">
                <PhaseTimings timings={task.timings} />
              </div>
            </Card>
          )}
          <Card title="Parameters">
            <div className="px-5 py-4">
              <Structured value={task.params} label="parameters" />
            </div>
          </Card>
        </div>
        <Details task={task} />
      </div>
    </>
  );
}

function OnNode({ nodeId }: { nodeId: string }) {
  const node = useNode(nodeId).data;
  return (
    <span className="inline-flex gap-1.5">
      <Link to="/nodes" className="rounded-sm hover:underline">
        Nodes
      </Link>
      <span aria-hidden="true">/</span>
      <Link to="/nodes/$nodeId" params={{ nodeId }} className="rounded-sm hover:underline">
        {node?.name ?? "node"}
      </Link>
    </span>
  );
}

function Details({ task }: { task: Task }) {
  const { may } = useActing();
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="Created">
          <When at={task.created_at} exact />
          <span className="block text-ink-muted">by {task.created_by}</span>
        </Fact>
        <Fact name="Started">
          {task.dispatched_at ? <When at={task.dispatched_at} exact /> : <Muted>not yet</Muted>}
        </Fact>
        {task.cancel_requested_at && (
          <Fact name="Cancel requested">
            <When at={task.cancel_requested_at} exact />
          </Fact>
        )}
        <Fact name="Ended">
          {task.finished_at ? <When at={task.finished_at} exact /> : <Muted>not yet</Muted>}
        </Fact>
        <Fact name="Expires">
          <When at={task.expires_at} exact />
        </Fact>
        <Fact name="Priority">{task.priority}</Fact>
        <Fact name="Deliveries">
          {task.generation}
          {task.generation > 1 && <Muted>, delivered again after a lost response or an expired lease</Muted>}
        </Fact>
        <Fact name="Task id">
          <CopyableId id={task.id} label="Copy task id" />
        </Fact>
        <Fact name="Correlation id">
          <CopyableId id={task.correlation_id} label="Copy correlation id" />
          {may("audit:read") && (
            <Link
              to="/audit"
              search={{ correlation_id: task.correlation_id }}
              className="rounded-sm text-sm font-medium text-kelp hover:underline"
            >
              Show in the audit trail
            </Link>
          )}{" "}
          <TraceLink id={task.id} />
        </Fact>
        {task.incident_id && (
          <Fact name="Incident">
            <CopyableId id={task.incident_id} label="Copy incident id" />
            <TraceLink id={task.incident_id} of="incident" />
          </Fact>
        )}
        {task.replays && (
          <Fact name="Replays">
            <Link
              to="/tasks/$taskId"
              params={{ taskId: task.replays }}
              className="rounded-sm text-kelp hover:underline"
            >
              Open the earlier task
            </Link>
          </Fact>
        )}
      </Facts>
    </Card>
  );
}

function Muted({ children }: { children: string }) {
  return <span className="text-ink-muted">{children}</span>;
}
