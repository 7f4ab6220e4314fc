// Cancels a run: nothing new starts, and it ends when what is under way has ended.

import { cancelRun, type Run } from "@holdfast/contracts/endpoints/runs";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { hasEnded } from "./run-marks.ts";

export function CancelRun({ run }: { run: Run }) {
  const { may } = useActing();
  const cancel = useChange({ send: (call) => call(cancelRun, { params: { run_id: run.id } }) });
  if (hasEnded(run) || !may("workflows:run")) return null;
  return (
    <>
      <Button onClick={() => cancel.mutate("")} busy={cancel.isPending} disabled={run.cancel_requested}>
        {run.cancel_requested ? "Cancelling…" : "Cancel run"}
        <span className="sr-only"> of {run.workflow_name}</span>
      </Button>
      {cancel.error && <ErrorNotice key={cancel.submittedAt} error={cancel.error} />}
    </>
  );
}
