// Executions of the organization, newest first, as they run; with filters in the address bar.

import { type ExecutionState, executionStates } from "@holdfast/contracts/endpoints/executions";
import { executionStateTitles } from "@holdfast/contracts/words/state-titles";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Button } from "../../design/controls/Button.tsx";
import { SelectField } from "../../design/forms/Field.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { ListCard } from "../../design/lists/ListCard.tsx";
import { useAgents } from "../agents/queries.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { ExecutionRow } from "./ExecutionRow.tsx";
import type { ExecutionFilters } from "./filters.ts";
import { useExecutions } from "./queries.ts";

const route = getRouteApi("/signed-in/executions");

export function ExecutionsPage() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const listing = useExecutions(filters);
  const agent = useAgents().data?.find(({ id }) => id === filters.agent_id);
  const change = (next: ExecutionFilters) => void navigate({ search: next, replace: true });
  const filtered = Object.keys(filters).length > 0;
  return (
    <>
      <PageHeader
        title="Executions"
        above={
          <Link to="/agents" className="rounded-sm hover:underline">
            Agents
          </Link>
        }
      >
        Steps that were dispatched to agents{agent && ` and given to ${agent.name}`}, newest first. <LiveMark />
      </PageHeader>
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <SelectField
          label="State"
          value={filters.status ?? ""}
          onChange={(event) => {
            const { status: _, ...rest } = filters;
            const chosen = event.currentTarget.value as ExecutionState | "";
            change(chosen === "" ? rest : { ...rest, status: chosen });
          }}
        >
          <option value="">All</option>
          {executionStates.map((state) => (
            <option key={state} value={state}>
              {executionStateTitles[state].title}
            </option>
          ))}
        </SelectField>
        {filtered && (
          <Button look="quiet" onClick={() => change({})}>
            Clear filters
          </Button>
        )}
      </div>
      <ListCard
        title="Executions"
        listing={listing}
        empty={filtered ? "No execution matches these filters." : "No step has been dispatched yet."}
        row={(execution, row) => <ExecutionRow key={execution.id} execution={execution} {...row} />}
      />
    </>
  );
}
