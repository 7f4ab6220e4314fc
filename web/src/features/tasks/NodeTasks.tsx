// The tasks of one node, newest first, as they run.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { Button } from "../../design/Button.tsx";
import { Card } from "../../design/Card.tsx";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { Icon } from "../../design/Icon.tsx";
import { Loading } from "../../design/Loading.tsx";
import { useActing } from "../../session.ts";
import { useNodeTasks } from "./queries.ts";
import { RunTaskDialog } from "./RunTaskDialog.tsx";
import { TaskRow } from "./TaskRow.tsx";

export function NodeTasks({ node }: { node: NodeDetail }) {
  const { may } = useActing();
  const listing = useNodeTasks(node.id);
  const [running, setRunning] = useState(false);
  const [opened, setOpened] = useState<string | null>(null);
  const { items } = listing;
  return (
    <Card title="Tasks" note={may("tasks:write") && <RunButton node={node} onRun={() => setRunning(true)} />}>
      {listing.error && (
        <div className="p-5">
          <ErrorNotice error={listing.error} onRetry={listing.refresh} />
        </div>
      )}
      {!items && !listing.error && (
        <div className="px-5">
          <Loading what="tasks" />
        </div>
      )}
      {items?.length === 0 && <p className="px-5 py-4 text-ink-muted">No tasks yet.</p>}
      <ul aria-label="Tasks">
        {items?.map((task) => (
          <TaskRow
            key={task.id}
            task={task}
            opened={opened === task.id}
            onToggle={() => setOpened(opened === task.id ? null : task.id)}
          />
        ))}
      </ul>
      {listing.hasMore && (
        <p className="px-3 py-2">
          <Button look="quiet" busy={listing.loadingMore} onClick={listing.loadMore}>
            Older tasks
          </Button>
        </p>
      )}
      {running && (
        <RunTaskDialog
          node={node}
          onClose={() => setRunning(false)}
          onRun={(task) => {
            setRunning(false);
            setOpened(task.id);
          }}
        />
      )}
    </Card>
  );
}

function RunButton({ node, onRun }: { node: NodeDetail; onRun: () => void }) {
  if (node.status !== "active") return <>no new tasks while {node.status}</>;
  return (
    <Button className="-my-2" onClick={onRun}>
      <Icon name="plus" />
      Run a task
    </Button>
  );
}
