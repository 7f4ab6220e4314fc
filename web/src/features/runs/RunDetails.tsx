// The facts of a run: its version, who started it, its times, input and output, and the ids that lead elsewhere.

import { isStepTest, versionWords } from "@holdfast/contracts/words/run-versions";
import { Link } from "@tanstack/react-router";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { Structured } from "../../design/values/Structured.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { TraceLink } from "../trace/TraceLink.tsx";
import type { RunDetail } from "./queries.ts";

export function RunDetails({ run }: { run: RunDetail }) {
  const { may } = useActing();
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="Workflow">
          <Link
            to="/workflows/$workflowId"
            params={{ workflowId: run.workflow_id }}
            search={isStepTest(run) ? {} : { version: String(run.version) }}
            className="rounded-sm text-kelp hover:underline"
          >
            {run.workflow_name}, {versionWords(run)}
          </Link>
        </Fact>
        <Fact name="Started by">{run.started_by}</Fact>
        <Fact name="Requested">
          <When at={run.created_at} exact />
        </Fact>
        <Fact name="Started">{run.started_at ? <When at={run.started_at} exact /> : "not yet"}</Fact>
        <Fact name="Ended">{run.finished_at ? <When at={run.finished_at} exact /> : "not yet"}</Fact>
        {!run.finished_at && (
          <Fact name="Deadline">
            <When at={run.deadline_at} exact />
          </Fact>
        )}
        <Fact name="Input">
          <Structured value={run.input} label="input" />
        </Fact>
        {run.output !== null && run.output !== undefined && (
          <Fact name="Output">
            <Structured value={run.output} label="output" />
          </Fact>
        )}
        <Fact name="Run id">
          <CopyableId id={run.id} label="Copy run id" />
        </Fact>
        <Fact name="Correlation id">
          <CopyableId id={run.correlation_id} label="Copy correlation id" />
          <span className="flex flex-wrap gap-x-4 gap-y-1.5">
            {may("audit:read") && (
              <Link
                to="/audit"
                search={{ correlation_id: run.correlation_id }}
                className="rounded-sm text-sm font-medium text-kelp hover:underline"
              >
                Show in the audit trail
              </Link>
            )}
            <TraceLink id={run.correlation_id} />
          </span>
        </Fact>
      </Facts>
    </Card>
  );
}
