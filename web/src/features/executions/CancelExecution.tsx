// Cancels an execution: at once while it has no agent, otherwise as soon as its agent has stopped the step.

import { cancelExecution, type Execution } from "@holdfast/contracts/endpoints/executions";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { hasEnded } from "./execution-marks.ts";

export function CancelExecution({ execution }: { execution: Execution }) {
  const { may } = useActing();
  const cancel = useChange({ send: (call) => call(cancelExecution, { params: { execution_id: execution.id } }) });
  if (hasEnded(execution) || !may("executions:write")) return null;
  return (
    <>
      <Button
        onClick={() => cancel.mutate("")}
        busy={cancel.isPending}
        disabled={execution.cancel_requested_at !== null}
      >
        {execution.cancel_requested_at ? "Cancelling…" : "Cancel"}
        <span className="sr-only"> {execution.step_id}</span>
      </Button>
      {cancel.error && <ErrorNotice key={cancel.submittedAt} error={cancel.error} />}
    </>
  );
}
