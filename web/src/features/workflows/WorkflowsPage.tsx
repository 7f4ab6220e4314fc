// The workflows of the organization: how their newest runs ended, what is published, and what is not yet.

import type { RecentRun } from "@holdfast/contracts/endpoints/recent-runs";
import type { Workflow } from "@holdfast/contracts/endpoints/workflows";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { runMarks } from "../runs/run-marks.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { DraftState } from "./DraftState.tsx";
import { NewWorkflowDialog } from "./NewWorkflowDialog.tsx";
import { useRecentRuns, useWorkflows } from "./queries.ts";
import { Sparkline } from "./Sparkline.tsx";

export function WorkflowsPage() {
  const { org, may } = useActing();
  const [creating, setCreating] = useState(false);
  const listing = useWorkflows();
  const { items, error } = listing;
  const ids = useMemo(() => (items ?? []).map(({ id }) => id), [items]);
  const recent = useRecentRuns(ids);
  const create = may("workflows:write") && (
    <Button look="primary" onClick={() => setCreating(true)}>
      <Icon name="plus" />
      New workflow
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Workflows"
        actions={
          <>
            <Link to="/runs" className="inline-flex h-9 items-center rounded-md px-3 font-medium text-kelp">
              All runs
            </Link>
            {items?.length !== 0 && create}
          </>
        }
      >
        Steps of {org.name} that run one after another, on agents and in the worker. <LiveMark />
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={listing.refresh} />}
      {!items && !error && <Loading what="workflows" />}
      {items?.length === 0 && <NoWorkflows create={create} />}
      {items && items.length > 0 && (
        <Table
          label="Workflows"
          columns={["Workflow", { wide: "Recent runs" }, "Last run", "Published", { wide: "Draft" }]}
        >
          {items.map((workflow) => (
            <Row key={workflow.id} workflow={workflow} runs={recent.data?.get(workflow.id) ?? []} />
          ))}
        </Table>
      )}
      {listing.hasMore && (
        <Button look="quiet" className="mt-2" busy={listing.loadingMore} onClick={listing.loadMore}>
          Older workflows
        </Button>
      )}
      {creating && <NewWorkflowDialog onClose={() => setCreating(false)} />}
    </>
  );
}

function Row({ workflow, runs }: { workflow: Workflow; runs: RecentRun[] }) {
  const [last] = runs;
  return (
    <tr>
      <Cell>
        <Link
          to="/workflows/$workflowId"
          params={{ workflowId: workflow.id }}
          className="rounded-sm font-medium text-kelp [overflow-wrap:anywhere] hover:underline"
        >
          {workflow.name}
        </Link>
      </Cell>
      <Cell className={wideOnly}>
        <Sparkline runs={runs} />
      </Cell>
      <Cell>
        {last ? (
          <Link to="/runs/$runId" params={{ runId: last.id }} className="rounded-sm hover:underline">
            <span className="flex flex-wrap items-baseline gap-x-3">
              <StatusMark state={runMarks[last.status].state}>{runMarks[last.status].word}</StatusMark>
              <span className="text-sm text-ink-muted">
                <When at={last.created_at} />
              </span>
            </span>
          </Link>
        ) : (
          <span className="text-ink-muted">Never</span>
        )}
      </Cell>
      <Cell>
        {workflow.published_version === null ? (
          <span className="text-ink-muted">Not yet</span>
        ) : (
          `Version ${workflow.published_version}`
        )}
      </Cell>
      <Cell className={wideOnly}>
        <DraftState workflow={workflow} />
      </Cell>
    </tr>
  );
}

function NoWorkflows({ create }: { create: React.ReactNode }) {
  return (
    <EmptyState icon={<Icon name="workflows" />} title="No workflows yet" actions={create || undefined}>
      <p>
        A workflow is a list of steps: scripts on agents in private networks, HTTP requests, conditions, waits and
        approvals. A run survives restarts of every process.
      </p>
      <p>
        <Prose text="Build one here as a graph, or apply a file: `holdfast workflow apply <file>`." />
      </p>
    </EmptyState>
  );
}
