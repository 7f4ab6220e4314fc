// The tasks of one node, newest first, as they run.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { ListCard, useOpening } from "../../design/lists/ListCard.tsx";
import { useActing } from "../../session.ts";
import { useNodeTasks } from "./queries.ts";
import { RunTaskDialog } from "./RunTaskDialog.tsx";
import { TaskRow } from "./TaskRow.tsx";

export function NodeTasks({ node }: { node: NodeDetail }) {
  const { may } = useActing();
  const listing = useNodeTasks(node.id);
  const [running, setRunning] = useState(false);
  const opening = useOpening();
  return (
    <ListCard
      title="Tasks"
      note={may("tasks:write") && <RunButton node={node} onRun={() => setRunning(true)} />}
      listing={listing}
      empty="No tasks yet."
      opening={opening}
      row={(task, row) => <TaskRow key={task.id} task={task} {...row} />}
    >
      {running && (
        <RunTaskDialog
          node={node}
          onClose={() => setRunning(false)}
          onRun={(task) => {
            setRunning(false);
            opening.setOpened(task.id);
          }}
        />
      )}
    </ListCard>
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
