// The facts of an execution: its times, its agent, and the ids that lead elsewhere.

import type { Execution } from "@holdfast/contracts/endpoints/executions";
import { Link } from "@tanstack/react-router";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { hasEnded } from "./execution-marks.ts";

export function ExecutionDetails({ execution }: { execution: Execution }) {
  const { may } = useActing();
  const { selector } = execution;
  const ended = hasEnded(execution);
  return (
    <Card title="Details">
      <Facts className="px-5 py-1">
        <Fact name="Agent">
          {execution.agent_id ? (
            <Link
              to="/executions"
              search={{ agent_id: execution.agent_id }}
              className="rounded-sm text-kelp hover:underline"
            >
              {execution.agent_name}
            </Link>
          ) : (
            <Muted>none yet</Muted>
          )}
        </Fact>
        <Fact name="Chosen by">
          {selector.tag && <Tag>{selector.tag}</Tag>}
          {selector.agent_id && <CopyableId id={selector.agent_id} label="Copy agent id" />}
          {!selector.tag && !selector.agent_id && <Muted>any agent of the organization</Muted>}
        </Fact>
        <Fact name="Kind">{execution.kind}</Fact>
        <Time name="Requested" at={execution.created_at} />
        <Time name="Sent to the agent" at={execution.dispatched_at} ended={ended} />
        <Time name="Started" at={execution.accepted_at} ended={ended} />
        {execution.cancel_requested_at && <Time name="Cancel requested" at={execution.cancel_requested_at} />}
        <Time name="Ended" at={execution.finished_at} />
        {execution.deadline_at && <Time name="Deadline" at={execution.deadline_at} />}
        <Fact name="Attempt">{execution.attempt}</Fact>
        <Fact name="Run">
          <CopyableId id={execution.run_id} label="Copy run id" />
        </Fact>
        <Fact name="Workflow">
          <CopyableId id={execution.workflow_id} label="Copy workflow id" />
        </Fact>
        <Fact name="Request id">
          <CopyableId id={execution.request_id} label="Copy request id" />
        </Fact>
        <Fact name="Correlation id">
          <CopyableId id={execution.correlation_id} label="Copy correlation id" />
          {may("audit:read") && (
            <Link
              to="/audit"
              search={{ correlation_id: execution.correlation_id }}
              className="rounded-sm text-sm font-medium text-kelp hover:underline"
            >
              Show in the audit trail
            </Link>
          )}
        </Fact>
      </Facts>
    </Card>
  );
}

/** Agents of other systems do not report that they have started. */
function Time({ name, at, ended = false }: { name: string; at: string | null; ended?: boolean }) {
  return (
    <Fact name={name}>{at ? <When at={at} exact /> : <Muted>{ended ? "not reported" : "not yet"}</Muted>}</Fact>
  );
}

function Muted({ children }: { children: string }) {
  return <span className="text-ink-muted">{children}</span>;
}
