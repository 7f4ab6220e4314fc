// One run as it runs: the graph with the state of each step, what it waits for, and everything that happened.

import { readWorkflow } from "@holdfast/workflows/document/read";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Notice } from "../../design/feedback/Notice.tsx";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs as inWords } from "../../design/values/time.ts";
import { useNow } from "../../design/values/use-now.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { outlineOfDocument } from "../workflows/document/outline.ts";
import { Graph } from "../workflows/graph/Graph.tsx";
import type { NodeState } from "../workflows/graph/GraphNode.tsx";
import { CancelRun } from "./CancelRun.tsx";
import { type RunDetail, useRun, useRunEvents, useRunSource } from "./queries.ts";
import { RetryRun } from "./RetryRun.tsx";
import { RunAgain } from "./RunAgain.tsx";
import { RunDetails } from "./RunDetails.tsx";
import { RunEvents } from "./RunEvents.tsx";
import { RunStep } from "./RunStep.tsx";
import { hasEnded, nodeMarks, ranMs, runMark } from "./run-marks.ts";
import { StepList } from "./StepList.tsx";
import { attemptsOf, tookMs } from "./timeline.ts";
import { Waiting } from "./Waiting.tsx";

const route = getRouteApi("/signed-in/runs/$runId");

export function RunPage() {
  const { runId } = route.useParams();
  const run = useRun(runId);
  if (run.data) return <Shown key={runId} run={run.data} />;
  return (
    <>
      <PageHeader title="Run" />
      <NotLoaded
        noun="run"
        query={run}
        explanation="It does not exist, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ run }: { run: RunDetail }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const source = useRunSource(run);
  const events = useRunEvents(run);
  const now = useNow("seconds");
  const document = useMemo(() => {
    const read = source.data && readWorkflow(source.data.source);
    return read?.ok ? read.document : undefined;
  }, [source.data]);
  const outline = useMemo(() => (document ? outlineOfDocument(document) : []), [document]);
  const attempts = useMemo(() => attemptsOf(events.data ?? []), [events.data]);
  const selected = chosen ?? stepOfInterest(run);
  const step = run.nodes.find(({ id }) => id === selected);
  const stateOf = (id: string): NodeState | undefined => {
    const node = run.nodes.find((one) => one.id === id);
    if (!node) return undefined;
    const took = tookMs(attempts.get(id) ?? [], now);
    return { mark: nodeMarks[node.status], ...(took === undefined ? {} : { note: inWords(took) }) };
  };
  return (
    <>
      <Header run={run} now={now} />
      {run.failure && (
        <div className="mb-6">
          <Notice state="failed" title={run.failure.message}>
            <p className="font-mono text-sm text-ink-muted">{run.failure.code}</p>
          </Notice>
        </div>
      )}
      <Waiting run={run} document={document} attempts={attempts} onSelect={setChosen} />
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          <Card title="Graph">
            <div className="h-[26rem]">
              <Graph
                label={`Steps of ${run.workflow_name}`}
                nodes={outline}
                selected={selected}
                onSelect={setChosen}
                stateOf={stateOf}
              />
            </div>
          </Card>
          <StepList
            nodes={run.nodes}
            outline={outline}
            stateOf={stateOf}
            selected={selected}
            onSelect={setChosen}
          />
        </div>
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          {step && (
            <RunStep step={step} title={document?.nodes[step.id]?.title} attempts={attempts.get(step.id) ?? []} />
          )}
          <RunDetails run={run} />
        </div>
        <div className="xl:col-span-2">
          <RunEvents events={events} onSelect={setChosen} />
        </div>
      </div>
    </>
  );
}

function Header({ run, now }: { run: RunDetail; now: number }) {
  const { state, word } = runMark(run);
  const took = ranMs(run, now);
  return (
    <PageHeader
      title={`Run of ${run.workflow_name}`}
      above={
        <Link to="/runs" search={{ workflow_id: run.workflow_id }} className="rounded-sm hover:underline">
          Runs of {run.workflow_name}
        </Link>
      }
      actions={
        <>
          <CancelRun run={run} />
          <RetryRun run={run} />
          {hasEnded(run) && <RunAgain run={run} />}
        </>
      }
    >
      <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <span role="status">
          <StatusMark state={state}>{word}</StatusMark>
        </span>
        {took !== undefined && (
          <span className="tabular-nums">{`${hasEnded(run) ? "took" : "for"} ${inWords(took)}`}</span>
        )}
        <LiveMark />
      </span>
    </PageHeader>
  );
}

/** What failed, else what is under way, else where it begins. */
function stepOfInterest({ nodes }: RunDetail): string | null {
  const at = (...states: string[]) => nodes.find(({ status }) => states.includes(status));
  const found = at("failed") ?? at("waiting", "retrying", "dispatched", "started") ?? nodes[0];
  return found?.id ?? null;
}
