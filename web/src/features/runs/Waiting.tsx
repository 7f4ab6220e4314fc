// What a run waits for, in words, and what one can do about it: an agent, an approval, an event, a time, the next attempt.

import type { RunNode } from "@holdfast/contracts/endpoints/runs";
import type { WorkflowDocument } from "@holdfast/workflows/document/schema";
import { whichAgent } from "@holdfast/workflows/document/which-agent";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Card } from "../../design/layout/Card.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { TimeLeft } from "../../design/values/When.tsx";
import { AnswerWait } from "./AnswerWait.tsx";
import { type RunDetail, useExecutionOf } from "./queries.ts";
import { hasEnded } from "./run-marks.ts";
import type { Attempt } from "./timeline.ts";

type WaitingProps = {
  run: RunDetail;
  document: WorkflowDocument | undefined;
  attempts: ReadonlyMap<string, readonly Attempt[]>;
  onSelect: (id: string) => void;
};

export function Waiting({ run, document, attempts, onSelect }: WaitingProps) {
  if (hasEnded(run)) return null;
  const waiting = run.nodes.filter(({ status }) => ["dispatched", "waiting", "retrying"].includes(status));
  if (run.status !== "queued" && waiting.length === 0) return null;
  return (
    <Card title="Waiting for" className="mb-6">
      <ul aria-label="Waiting for">
        {run.status === "queued" && (
          <li className="px-5 py-3">
            A worker. Runs of an organization start when fewer than its limit are under way.
          </li>
        )}
        {waiting.map((node) => {
          const attempt = attempts.get(node.id)?.at(-1);
          return (
            <li
              key={node.id}
              className="flex flex-wrap items-baseline gap-x-4 gap-y-2 border-b border-line px-5 py-3 last:border-b-0"
            >
              <button
                type="button"
                onClick={() => onSelect(node.id)}
                className="rounded-sm font-medium text-kelp hover:underline"
              >
                {document?.nodes[node.id]?.title ?? node.id}
              </button>
              <Reason run={run} node={node} described={document?.nodes[node.id]} attempt={attempt} />
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

type ReasonProps = {
  run: RunDetail;
  node: RunNode;
  described: WorkflowDocument["nodes"][string] | undefined;
  attempt: Attempt | undefined;
};

function Reason({ run, node, described, attempt }: ReasonProps): ReactNode {
  if (node.status === "dispatched") return <OnAgent requestId={attempt?.requestId} described={described} />;
  if (node.status === "retrying") {
    return (
      <span className="min-w-0 flex-1">
        Attempt {node.attempt} starts in {attempt?.notBefore ? <TimeLeft until={attempt.notBefore} /> : "a moment"}
        . {attempt?.failure && <span className="text-ink-muted">Before: {attempt.failure.message}</span>}
      </span>
    );
  }
  if (described?.type !== "wait") return <span className="min-w-0 flex-1">{node.waiting_for}</span>;
  if (described.for !== undefined) {
    return (
      <span className="min-w-0 flex-1">Time: {attempt?.until && <TimeLeft until={attempt.until} />} left.</span>
    );
  }
  const message = (attempt?.input as { approval?: { message?: string } } | null)?.approval?.message;
  return (
    <>
      <span className="min-w-0 flex-1">
        {described.event === undefined ? "An approval" : `The event ${described.event}`}
        {message && (
          <>
            : <Prose text={message} />
          </>
        )}
        {attempt?.until && (
          <span className="text-ink-muted">
            {" "}
            (<TimeLeft until={attempt.until} /> left)
          </span>
        )}
      </span>
      <AnswerWait run={run} node={node.id} event={described.event} />
    </>
  );
}

function OnAgent({ requestId, described }: { requestId: string | undefined } & Pick<ReasonProps, "described">) {
  const { data } = useExecutionOf(requestId);
  const placed = data?.agent_name;
  return (
    <span className="min-w-0 flex-1">
      {placed ? `The result of agent ${placed}` : `Waits for ${whichAgent(described)}`}
      {data?.progress && <span className="text-ink-muted"> · {data.progress.message}</span>}.{" "}
      {data && (
        <Link
          to="/executions/$executionId"
          params={{ executionId: data.id }}
          className="rounded-sm font-medium text-kelp hover:underline"
        >
          {placed ? "Open execution" : "Why no agent was chosen"}
        </Link>
      )}
    </span>
  );
}
