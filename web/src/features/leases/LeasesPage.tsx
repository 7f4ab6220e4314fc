// Leases of the organization, newest first, as they change; with filters in the address bar.

import { type Lease, leaseStates } from "@holdfast/contracts/endpoints/leases";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { DetailsFooter, DisclosureRow } from "../../design/lists/DisclosureRow.tsx";
import { ChoiceFilter, FilterLine, isFiltered } from "../../design/lists/FilterLine.tsx";
import { ListCard } from "../../design/lists/ListCard.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { LiveMark } from "../shell/LiveMark.tsx";
import type { LeaseFilters } from "./filters.ts";
import { LeaseReason } from "./LeaseReason.tsx";
import { leaseMark } from "./lease-marks.ts";
import { useLeases } from "./queries.ts";
import { TerminateLease } from "./TerminateLease.tsx";

const route = getRouteApi("/signed-in/leases");

export function LeasesPage() {
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const listing = useLeases(filters);
  const change = (next: LeaseFilters) => void navigate({ search: next, replace: true });
  return (
    <>
      <PageHeader
        title="Leases"
        above={
          <Link to="/hosts" className="rounded-sm hover:underline">
            Hosts
          </Link>
        }
      >
        Each lease is one VM, from the request until nothing of it is left on a host. <LiveMark />
      </PageHeader>
      <FilterLine filters={filters} onChange={change}>
        <ChoiceFilter
          label="State"
          value={filters.status}
          choices={leaseStates.map((state) => [state, leaseStateTitles[state].title])}
          onChoose={(status) => change({ ...filters, status })}
        />
      </FilterLine>
      <ListCard
        title="Leases"
        listing={listing}
        empty={isFiltered(filters) ? "No lease matches these filters." : "No VM has been requested yet."}
        row={(lease, row) => <LeaseRow key={lease.id} lease={lease} {...row} />}
      />
    </>
  );
}

type LeaseRowProps = { lease: Lease; opened: boolean; onToggle: () => void };

function LeaseRow({ lease, opened, onToggle }: LeaseRowProps) {
  const { state, word } = leaseMark(lease);
  return (
    <DisclosureRow
      opened={opened}
      onToggle={onToggle}
      summary={
        <>
          <span className="font-mono text-sm [overflow-wrap:anywhere]">
            {lease.work ?? `${lease.image_id} ${lease.profile}`}
          </span>
          <StatusMark state={state}>{word}</StatusMark>
        </>
      }
      note={
        <>
          {lease.host_name && `${lease.host_name}, `}
          {lease.label && `${lease.label}, `}
          <When at={lease.created_at} />
        </>
      }
      actions={<TerminateLease lease={lease} />}
      details={() => (
        <>
          <LeaseReason lease={lease} />
          <DetailsFooter correlationId={lease.correlation_id}>
            <Link
              to="/leases/$leaseId"
              params={{ leaseId: lease.id }}
              className="inline-flex items-center gap-1.5 rounded-sm font-medium text-kelp hover:underline"
            >
              Open lease
              <Icon name="arrow" className="size-3.5" />
            </Link>
          </DetailsFooter>
        </>
      )}
    />
  );
}
