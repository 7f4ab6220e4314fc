// Has the node check an allocation's user and restore what is missing. Reports the outcome only after the node has.

import { type Allocation, repairAllocation } from "@holdfast/contracts/endpoints/allocations";
import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { type RepairedUser, repairInWords } from "@holdfast/contracts/words/allocations";
import { Button } from "../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useChange } from "../../use-change.ts";
import { useTask } from "../tasks/queries.ts";
import { hasEnded } from "../tasks/task-marks.ts";

type RepairDialogProps = {
  allocation: Allocation;
  onClose: () => void;
  /** The node has confirmed that the user is complete. */
  onRepaired?: () => void;
};

export function RepairDialog({ allocation, onClose, onRepaired }: RepairDialogProps) {
  const { username, node_name } = allocation;
  const repair = useChange({
    send: (call) => call(repairAllocation, { params: { allocation_id: allocation.id } }),
  });
  return (
    <Dialog open onClose={onClose} title={`Repair ${username} on ${node_name}`}>
      {repair.data ? (
        <Progress allocation={allocation} asked={repair.data} onClose={onClose} onRepaired={onRepaired} />
      ) : (
        <>
          <p className="text-ink-muted">
            {node_name} checks the user {username} and restores what is missing: the account and its group with the
            same uid, the login shell, and the home directory if it is gone. Files in the home directory are not
            changed, and open terminals stay open.
          </p>
          {repair.error ? (
            <div className="mt-4">
              <ErrorNotice error={repair.error} />
            </div>
          ) : null}
          <DialogActions>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" busy={repair.isPending} onClick={() => repair.mutate("")}>
              Check and repair
            </Button>
          </DialogActions>
        </>
      )}
    </Dialog>
  );
}

type ProgressProps = {
  allocation: Allocation;
  asked: Task;
  onClose: () => void;
  onRepaired: (() => void) | undefined;
};

function Progress({ allocation, asked, onClose, onRepaired }: ProgressProps) {
  const { data: task = asked, error } = useTask(asked.id);
  const completed = task.status === "completed";
  return (
    <>
      <div role="status">
        <CurrentState allocation={allocation} task={task} />
      </div>
      {error && !hasEnded(task) && <ErrorNotice error={error} />}
      <DialogActions>
        {completed && onRepaired ? (
          <Button look="primary" onClick={onRepaired}>
            Open terminal
          </Button>
        ) : (
          <Button onClick={onClose}>Close</Button>
        )}
      </DialogActions>
    </>
  );
}

function CurrentState({ allocation, task }: { allocation: Allocation; task: Task }) {
  if (task.status === "completed")
    return (
      <StatusMark state="ok" long>
        <span>{repairInWords(allocation, task.result as RepairedUser)}</span>
      </StatusMark>
    );
  if (task.failure)
    return (
      <Notice state="failed" title={task.failure.message}>
        <Prose text={task.failure.next_step} /> <span className="font-mono text-sm">{task.failure.code}</span>
      </Notice>
    );
  const doing = task.phase ? `: ${task.phase.replaceAll("_", " ")}` : "";
  return (
    <StatusMark state="moving">
      {task.status === "queued"
        ? `Waiting for ${allocation.node_name}`
        : `Running on ${allocation.node_name}${doing}`}
    </StatusMark>
  );
}
