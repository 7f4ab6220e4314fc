// One execution as it runs: what it waits for, what it prints, and how it ended.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { getExecution } from "@holdfast/contracts/endpoints/executions";
import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Structured } from "../../design/values/Structured.tsx";
import { tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import { CancelExecution } from "./CancelExecution.tsx";
import { ExecutionDetails } from "./ExecutionDetails.tsx";
import { ExecutionOutcome } from "./ExecutionOutcome.tsx";
import { executionMark, hasEnded, ranMs } from "./execution-marks.ts";
import { NotChosenAgents } from "./NotChosenAgents.tsx";
import { PrintedOutput } from "./PrintedOutput.tsx";
import { useExecution } from "./queries.ts";

const route = getRouteApi("/signed-in/executions/$executionId");
type Detail = AnswerOf<typeof getExecution>;

export function ExecutionPage() {
  const { executionId } = route.useParams();
  const execution = useExecution(executionId);
  if (execution.data) return <Shown execution={execution.data} />;
  return (
    <>
      <PageHeader title="Execution" />
      <NotLoaded
        noun="execution"
        query={execution}
        explanation="It does not exist, is older than the retained history, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ execution }: { execution: Detail }) {
  const { state, word } = executionMark(execution);
  const took = execution.finished_at ? ranMs(execution, 0) : undefined;
  const waits = execution.status === "pending" || execution.status === "unplaced";
  return (
    <>
      <PageHeader
        title={execution.step_id}
        above={
          <Link to="/executions" className="rounded-sm hover:underline">
            Executions
          </Link>
        }
        actions={<CancelExecution execution={execution} />}
      >
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1" role="status">
          <StatusMark state={state}>{word}</StatusMark>
          {took !== undefined && <>took {tookMs(took)}</>}
          <LiveMark />
        </span>
      </PageHeader>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          {waits && (
            <Card title={execution.status === "pending" ? "Waiting for an agent" : "Why no agent took it"}>
              <NotChosenAgents agents={execution.not_chosen} />
            </Card>
          )}
          {!waits && (
            <Card title="Printed output">
              <PrintedOutput execution={execution} />
            </Card>
          )}
          {hasEnded(execution) && !waits && (
            <Card title="Result">
              <div className="space-y-4 px-5 py-4">
                <ExecutionOutcome execution={execution} />
                <Result execution={execution} />
              </div>
            </Card>
          )}
          {execution.late_results.length > 0 && <LateResults results={execution.late_results} />}
        </div>
        <ExecutionDetails execution={execution} />
      </div>
    </>
  );
}

function Result({ execution }: { execution: Detail }) {
  if (execution.output !== null && execution.output !== undefined) {
    return <Structured value={execution.output} label="output" />;
  }
  if (execution.output_erased_at) {
    return (
      <p className="text-ink-muted">
        The output was erased <When at={execution.output_erased_at} />. Results are kept for a limited time.
      </p>
    );
  }
  return execution.error === null ? <p className="text-ink-muted">The step returned no output.</p> : null;
}

function LateResults({ results }: { results: Detail["late_results"] }) {
  return (
    <Card title="Late results">
      <div className="px-5 py-4">
        <p className="text-sm text-ink-muted">
          Reported after the execution had ended. They are kept as evidence and changed nothing.
        </p>
        <ul className="mt-2 space-y-1 text-sm">
          {results.map((late) => (
            <li key={late.at}>
              {late.status} <When at={late.at} exact />
              {late.error && <span className="text-ink-muted">: {late.error}</span>}
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}
