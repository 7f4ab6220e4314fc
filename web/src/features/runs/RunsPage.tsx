// Runs of all workflows, newest first, as they run; with filters in the address bar.

import { codeOf } from "@holdfast/contracts/client";
import { type RunState, runStates } from "@holdfast/contracts/endpoints/runs";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Button } from "../../design/controls/Button.tsx";
import { SelectField } from "../../design/forms/Field.tsx";
import { SettlingField } from "../../design/forms/SettlingField.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { ListCard } from "../../design/lists/ListCard.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import { useWorkflowNames } from "../workflows/queries.ts";
import type { RunFilters } from "./filters.ts";
import { useRuns } from "./queries.ts";
import { RunRow } from "./RunRow.tsx";
import { runMarks } from "./run-marks.ts";

const route = getRouteApi("/signed-in/runs");

export function RunsPage() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const listing = useRuns(filters);
  const change = (next: RunFilters) => void navigate({ search: next, replace: true });
  const filtered = Object.keys(filters).length > 0;
  // An id that does not exist is no failure of the page.
  const missing = filters.id !== undefined && codeOf(listing.error) === "not_found";
  const shown = missing ? { ...listing, error: null, items: [] } : listing;
  return (
    <>
      <PageHeader
        title="Runs"
        above={
          <Link to="/workflows" className="rounded-sm hover:underline">
            Workflows
          </Link>
        }
      >
        Runs of all workflows, newest first. <LiveMark />
      </PageHeader>
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <StateFilter filters={filters} onChange={change} />
        <WorkflowFilter filters={filters} onChange={change} />
        <SettlingField
          label="Run id"
          value={filters.id ?? ""}
          placeholder="Paste the id of a run"
          className="w-80 max-w-full"
          onSettle={(id) => {
            const { id: _, ...rest } = filters;
            change(id === "" ? rest : { ...rest, id });
          }}
        />
        {filtered && (
          <Button look="quiet" onClick={() => change({})}>
            Clear filters
          </Button>
        )}
      </div>
      <ListCard
        title="Runs"
        listing={shown}
        empty={filtered ? "No run matches these filters." : "No workflow has run yet."}
        row={(run, row) => <RunRow key={run.id} run={run} {...row} />}
      />
    </>
  );
}

type FilterProps = { filters: RunFilters; onChange: (next: RunFilters) => void };

function StateFilter({ filters, onChange }: FilterProps) {
  return (
    <SelectField
      label="State"
      value={filters.status ?? ""}
      onChange={(event) => {
        const { status: _, ...rest } = filters;
        const chosen = event.currentTarget.value as RunState | "";
        onChange(chosen === "" ? rest : { ...rest, status: chosen });
      }}
    >
      <option value="">All</option>
      {runStates.map((state) => (
        <option key={state} value={state}>
          {runMarks[state].word}
        </option>
      ))}
    </SelectField>
  );
}

function WorkflowFilter({ filters, onChange }: FilterProps) {
  const { data: workflows = [] } = useWorkflowNames();
  const known = workflows.some(({ id }) => id === filters.workflow_id);
  return (
    <SelectField
      label="Workflow"
      value={filters.workflow_id ?? ""}
      className="max-w-full"
      onChange={(event) => {
        const { workflow_id: _, ...rest } = filters;
        const chosen = event.currentTarget.value;
        onChange(chosen === "" ? rest : { ...rest, workflow_id: chosen });
      }}
    >
      <option value="">All</option>
      {filters.workflow_id && !known && <option value={filters.workflow_id}>{filters.workflow_id}</option>}
      {workflows.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </SelectField>
  );
}
