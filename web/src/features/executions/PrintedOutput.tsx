// What a step prints, as it prints it.

import type { Execution } from "@holdfast/contracts/endpoints/executions";
import { classes } from "../../design/controls/classes.ts";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { hasEnded } from "./execution-marks.ts";
import { useExecutionOutput } from "./queries.ts";

export function PrintedOutput({ execution }: { execution: Execution }) {
  const { data, error, refetch } = useExecutionOutput(execution);
  if (error && !data) {
    return (
      <div className="p-5">
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  if (!data) {
    return (
      <div className="px-5">
        <Loading what="output" />
      </div>
    );
  }
  if (data.chunks.length === 0) {
    return (
      <p className="px-5 py-4 text-ink-muted">
        {hasEnded(execution) ? "The step printed nothing while it ran." : "Nothing printed yet."}
      </p>
    );
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section would need a heading of its own
    <div
      role="region"
      aria-label="Printed output"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
      tabIndex={0}
      className="max-h-[32rem] overflow-auto px-5 py-4"
    >
      <pre className="font-mono text-sm whitespace-pre-wrap [overflow-wrap:anywhere]">
        {data.chunks.map((chunk) => (
          <span key={chunk.seq} className={classes(chunk.stream === "stderr" && "text-failed")}>
            {chunk.text}
          </span>
        ))}
      </pre>
    </div>
  );
}
