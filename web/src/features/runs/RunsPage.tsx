// Runs of all workflows, newest first, as they run; with filters in the address bar.

import { codeOf } from "@holdfast/contracts/client";
import { runStates } from "@holdfast/contracts/endpoints/runs";
import { getRouteApi, Link } from "@tanstack/react-router";
import { SettlingField } from "../../design/forms/SettlingField.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { ChoiceFilter, FilterLine, isFiltered } from "../../design/lists/FilterLine.tsx";
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
  const { data: workflows } = useWorkflowNames();
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
      <FilterLine filters={filters} onChange={change}>
        <ChoiceFilter
          label="State"
          value={filters.status}
          choices={runStates.map((state) => [state, runMarks[state].word])}
          onChoose={(status) => change({ ...filters, status })}
        />
        <ChoiceFilter
          label="Workflow"
          value={filters.workflow_id}
          choices={(workflows ?? []).map(({ id, name }) => [id, name])}
          onChoose={(workflow_id) => change({ ...filters, workflow_id })}
        />
        <SettlingField
          label="Run id"
          value={filters.id ?? ""}
          placeholder="Paste the id of a run"
          className="w-80 max-w-full"
          onSettle={(id) => change({ ...filters, id: id || undefined })}
        />
      </FilterLine>
      <ListCard
        title="Runs"
        listing={shown}
        empty={isFiltered(filters) ? "No run matches these filters." : "No workflow has run yet."}
        row={(run, row) => <RunRow key={run.id} run={run} {...row} />}
      />
    </>
  );
}
