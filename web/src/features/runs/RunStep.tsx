// One step of a run: its attempts with their times, what went in, what came out or went wrong, and what it printed on its agent.

import type { RunNode } from "@holdfast/contracts/endpoints/runs";
import { Link } from "@tanstack/react-router";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Fact, Facts } from "../../design/lists/Facts.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { Structured } from "../../design/values/Structured.tsx";
import { tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { PrintedOutput } from "../executions/PrintedOutput.tsx";
import { wordForType } from "../workflows/graph/words.ts";
import { useExecutionOf } from "./queries.ts";
import { nodeMarks } from "./run-marks.ts";
import type { Attempt } from "./timeline.ts";

type RunStepProps = { step: RunNode; title: string | undefined; attempts: readonly Attempt[] };

export function RunStep({ step, title, attempts }: RunStepProps) {
  const { state, word, meaning } = nodeMarks[step.status];
  const last = attempts.at(-1);
  const execution = useExecutionOf(last?.requestId);
  return (
    <Card title={title ?? step.id} note={<StatusMark state={state}>{word}</StatusMark>}>
      <Facts className="px-5 py-1">
        <Fact name="State">{meaning}</Fact>
        <Fact name="Type">
          {wordForType(step.type)} <span className="font-mono text-sm text-ink-muted">{step.id}</span>
        </Fact>
        {execution.data && (
          <Fact name="Agent">
            {execution.data.agent_name ?? "none yet"},{" "}
            <Link
              to="/executions/$executionId"
              params={{ executionId: execution.data.id }}
              className="rounded-sm font-medium text-kelp hover:underline"
            >
              open execution
            </Link>
          </Fact>
        )}
        {attempts.map((attempt) => (
          <Fact key={attempt.startedAt + attempt.attempt} name={`Attempt ${attempt.attempt}`}>
            <AttemptLine attempt={attempt} />
          </Fact>
        ))}
      </Facts>
      {step.failure && (
        <div className="px-5 pb-4">
          <Notice state="failed" title={step.failure.message}>
            <p className="font-mono text-sm text-ink-muted">{step.failure.code}</p>
          </Notice>
        </div>
      )}
      <Value name="Input" value={last?.input} />
      <Value name="Output" value={step.output} />
      {execution.data && (
        <>
          <h3 className="border-t border-line px-5 pt-3 text-sm font-medium text-ink-muted">Printed output</h3>
          <PrintedOutput execution={execution.data} />
        </>
      )}
    </Card>
  );
}

function AttemptLine({ attempt: { startedAt, endedAt, failure } }: { attempt: Attempt }) {
  return (
    <>
      <When at={startedAt} exact />
      {endedAt && `, took ${tookMs(Date.parse(endedAt) - Date.parse(startedAt))}`}
      {failure && <span className="block text-sm text-failed">{failure.message}</span>}
    </>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  if (value === null || value === undefined || isEmpty(value)) return null;
  return (
    <div className="border-t border-line px-5 py-3">
      <h3 className="mb-1.5 text-sm font-medium text-ink-muted">{name}</h3>
      <Structured value={value} label={name.toLowerCase()} />
    </div>
  );
}

const isEmpty = (value: unknown) => typeof value === "object" && value !== null && Object.keys(value).length === 0;
