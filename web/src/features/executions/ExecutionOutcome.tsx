// How an execution ended, in words: what happened and what to do now. Nothing while it runs.

import type { Execution } from "@holdfast/contracts/endpoints/executions";
import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";

export function ExecutionOutcome({ execution }: { execution: Pick<Execution, "status" | "error" | "progress"> }) {
  const { status, error, progress } = execution;
  if (error === null) return progress ? <p className="text-sm">{progress.message}</p> : null;
  const known = Object.hasOwn(executionOutcomes, error)
    ? executionOutcomes[error as keyof typeof executionOutcomes]
    : undefined;
  return (
    <Notice state={status === "cancelled" ? "unknown" : "failed"} title={known?.message ?? "The step failed."}>
      {known ? (
        <p>
          <Prose text={known.nextStep} />
        </p>
      ) : (
        <p className="[overflow-wrap:anywhere]">{error}</p>
      )}
      {known && <p className="mt-1 font-mono text-sm text-ink-muted">{error}</p>}
    </Notice>
  );
}
