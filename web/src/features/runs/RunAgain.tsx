// Starts another run with the same input, of the newest version.

import { startRun } from "@holdfast/contracts/endpoints/runs";
import { isStepTest } from "@holdfast/contracts/words/run-versions";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { newIdempotencyKey } from "../../idempotency.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import type { RunDetail } from "./queries.ts";

export function RunAgain({ run }: { run: RunDetail }) {
  const { may } = useActing();
  const navigate = useNavigate();
  const key = useRef<string | null>(null);
  const again = useChange({
    send: (call, idempotencyKey) =>
      call(startRun, {
        params: { workflow_id: run.workflow_id },
        body: { input: (run.input ?? {}) as Record<string, unknown> },
        idempotencyKey,
      }),
    said: `Started another run of ${run.workflow_name}`,
    onDone: ({ id }) => void navigate({ to: "/runs/$runId", params: { runId: id } }),
  });
  if (isStepTest(run) || !may("workflows:run")) return null;
  const start = () => {
    key.current ??= newIdempotencyKey();
    again.mutate(key.current);
  };
  return (
    <>
      <Button busy={again.isPending} onClick={start}>
        Run again
      </Button>
      {again.error && <ErrorNotice key={again.submittedAt} error={again.error} />}
    </>
  );
}
