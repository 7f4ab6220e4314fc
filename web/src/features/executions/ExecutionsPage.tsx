// Executions of the organization, newest first, as they run; with filters in the address bar.

import { executionStates } from "@holdfast/contracts/endpoints/executions";
import { executionStateTitles } from "@holdfast/contracts/words/state-titles";
import { getRouteApi, Link } from "@tanstack/react-router";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { ChoiceFilter, FilterLine, isFiltered } from "../../design/lists/FilterLine.tsx";
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
      <FilterLine filters={filters} onChange={change}>
        <ChoiceFilter
          label="State"
          value={filters.status}
          choices={executionStates.map((state) => [state, executionStateTitles[state].title])}
          onChoose={(status) => change({ ...filters, status })}
        />
      </FilterLine>
      <ListCard
        title="Executions"
        listing={listing}
        empty={isFiltered(filters) ? "No execution matches these filters." : "No step has been dispatched yet."}
        row={(execution, row) => <ExecutionRow key={execution.id} execution={execution} {...row} />}
      />
    </>
  );
}
