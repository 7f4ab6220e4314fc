// Why the last poll of a controller failed, and what to do now.

import type { JenkinsController } from "@holdfast/contracts/endpoints/jenkins";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";

export function ControllerProblem({
  controller,
  className = "",
}: {
  controller: JenkinsController;
  className?: string;
}) {
  const { problem, state } = controller;
  if (!problem) return null;
  return (
    <div className={className}>
      <Notice state={state === "refused" ? "failed" : "degraded"} title={problem.message}>
        <p>
          <Prose text={problem.next_step} />
        </p>
        <p className="mt-1 font-mono text-sm text-ink-muted">{problem.code}</p>
      </Notice>
    </div>
  );
}
