// Approves or rejects what a run waits for, or sends it the event.

import { resumeRun } from "@holdfast/contracts/endpoints/runs";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

type AnswerWaitProps = { run: { id: string }; node: string; event: string | undefined };

export function AnswerWait({ run, node, event }: AnswerWaitProps) {
  const { may } = useActing();
  const yes = useAnswer(run.id, node, true);
  const no = useAnswer(run.id, node, false);
  if (!may("workflows:run")) return null;
  const [accept, refuse] = event === undefined ? ["Approve", "Reject"] : ["Send event", "Fail the step"];
  const error = yes.error ?? no.error;
  return (
    <>
      <span className="flex flex-wrap gap-2">
        <Button look="primary" busy={yes.isPending} disabled={yes.isSuccess} onClick={() => yes.mutate("")}>
          {accept}
          <span className="sr-only"> {node}</span>
        </Button>
        <Button busy={no.isPending} disabled={no.isSuccess} onClick={() => no.mutate("")}>
          {refuse}
          <span className="sr-only"> {node}</span>
        </Button>
      </span>
      {error && (
        <div className="basis-full">
          <ErrorNotice key={Math.max(yes.submittedAt, no.submittedAt)} error={error} />
        </div>
      )}
    </>
  );
}

function useAnswer(runId: string, node: string, approved: boolean) {
  return useChange({
    send: (call) => call(resumeRun, { params: { run_id: runId }, body: { node, approved, output: {} } }),
  });
}
