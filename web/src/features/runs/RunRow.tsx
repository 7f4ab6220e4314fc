// One run in a list: its state in a line, and on demand why it failed and where it leads.

import type { Run } from "@holdfast/contracts/endpoints/runs";
import { versionWords } from "@holdfast/contracts/words/run-versions";
import { Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { DetailsFooter, DisclosureRow } from "../../design/lists/DisclosureRow.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { CancelRun } from "./CancelRun.tsx";
import { hasEnded, ranMs, runMark } from "./run-marks.ts";

type RunRowProps = { run: Run; opened: boolean; onToggle: () => void };

export function RunRow({ run, opened, onToggle }: RunRowProps) {
  const { state, word } = runMark(run);
  const took = run.finished_at ? ranMs(run, 0) : undefined;
  return (
    <DisclosureRow
      opened={opened}
      onToggle={onToggle}
      summary={
        <>
          <span className="font-medium [overflow-wrap:anywhere]">{run.workflow_name}</span>
          <StatusMark state={state}>{word}</StatusMark>
        </>
      }
      note={
        <>
          {took !== undefined && `took ${tookMs(took)}, `}
          <When at={run.created_at} /> by {run.started_by}
        </>
      }
      actions={
        <>
          {!hasEnded(run) && <CancelRun run={run} />}
          <Link
            to="/runs/$runId"
            params={{ runId: run.id }}
            className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
          >
            Open<span className="sr-only"> run {run.id}</span>
            <Icon name="arrow" className="size-3.5" />
          </Link>
        </>
      }
      details={() => (
        <>
          {run.failure && (
            <Notice state="failed" title={run.failure.message}>
              <p className="font-mono text-sm text-ink-muted">{run.failure.code}</p>
            </Notice>
          )}
          <p className="flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
            Run <CopyableId id={run.id} label="Copy run id" /> ({versionWords(run)})
          </p>
          <DetailsFooter correlationId={run.correlation_id} />
        </>
      )}
    />
  );
}
