// The list of allocations.

import { allocationStatuses } from "@holdfast/contracts/endpoints/allocations";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Button, buttonClasses } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Checkbox, SelectField } from "../../design/forms/Field.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useActing } from "../../session.ts";
import { NodePicker, nodeOption } from "../nodes/NodePicker.tsx";
import { useNode, useUsableNodes } from "../nodes/queries.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { AllocationTable } from "./AllocationTable.tsx";
import { allocationMarks } from "./allocation-marks.ts";
import type { AllocationFilters } from "./filters.ts";
import { NewAllocationDialog } from "./NewAllocationDialog.tsx";
import { useAllocations } from "./queries.ts";

const route = getRouteApi("/signed-in/allocations");

export function AllocationsPage() {
  const { may } = useActing();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const change = (next: AllocationFilters) => void navigate({ search: next, replace: true });
  const listing = useAllocations(filters);
  const { total: usable } = useUsableNodes();
  const shown = listing.items?.filter(({ status }) => filters.status || filters.released || status !== "released");
  const filtered = Boolean(filters.node_id || filters.status || filters.owner);
  const anyNode = usable !== undefined && usable > 0;
  const add = may("allocations:write") && anyNode && (
    <Button look="primary" onClick={() => change({ ...filters, add: "yes" })}>
      <Icon name="plus" />
      New allocation
    </Button>
  );
  return (
    <>
      <PageHeader title="Allocations" actions={add}>
        Users on nodes: yours, those shared with you, and all of them for administrators. <LiveMark />
      </PageHeader>
      <FilterBar filters={filters} onChange={change} />
      {listing.error && <ErrorNotice error={listing.error} onRetry={listing.refresh} />}
      {!shown && !listing.error && <Loading what="allocations" />}
      {shown && shown.length > 0 && <AllocationTable allocations={shown} />}
      {shown?.length === 0 && filtered && (
        <EmptyState
          title="No allocation matches"
          actions={<Button onClick={() => change({})}>Clear filters</Button>}
        >
          <p>Choose another node, status or owner, or clear the filters.</p>
        </EmptyState>
      )}
      {shown?.length === 0 && !filtered && usable !== undefined && <Nothing anyNode={anyNode} add={add} />}
      {listing.hasMore && (
        <Button className="mt-4" busy={listing.loadingMore} onClick={listing.loadMore}>
          Load more
        </Button>
      )}
      {filters.add && may("allocations:write") && (
        <NewAllocationDialog
          {...(filters.node_id ? { nodeId: filters.node_id } : {})}
          onClose={() => change({ ...filters, add: undefined })}
        />
      )}
    </>
  );
}

type FilterBarProps = { filters: AllocationFilters; onChange: (filters: AllocationFilters) => void };

function FilterBar({ filters, onChange }: FilterBarProps) {
  const node = useNode(filters.node_id).data;
  const { may } = useActing();
  return (
    <search className="mb-4 grid grid-cols-2 items-end gap-3 sm:flex" aria-label="Filter allocations">
      <NodePicker
        label="Node"
        none="Any"
        choice={{ state: "present" }}
        value={node && filters.node_id ? nodeOption(node) : null}
        onChange={(option) => onChange({ ...filters, node_id: option?.id })}
        className="sm:w-56"
      />
      <SelectField
        label="Status"
        value={filters.status ?? ""}
        onChange={(event) =>
          onChange({ ...filters, status: (event.currentTarget.value || undefined) as AllocationFilters["status"] })
        }
        className="sm:w-44"
      >
        <option value="">Any</option>
        {allocationStatuses.map((status) => (
          <option key={status} value={status}>
            {allocationMarks[status].word}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Owner"
        value={filters.owner ?? ""}
        onChange={(event) =>
          onChange({ ...filters, owner: (event.currentTarget.value || undefined) as AllocationFilters["owner"] })
        }
        className="sm:w-44"
      >
        <option value="">Any</option>
        <option value="me">You</option>
        {may("allocations:admin") && <option value="none">No active owner</option>}
      </SelectField>
      {!filters.status && (
        <div className="flex min-h-9 items-center">
          <Checkbox
            label="Include released"
            checked={filters.released === "yes"}
            onChange={(event) =>
              onChange({ ...filters, released: event.currentTarget.checked ? "yes" : undefined })
            }
          />
        </div>
      )}
    </search>
  );
}

function Nothing({ anyNode, add }: { anyNode: boolean; add: React.ReactNode }) {
  const { may } = useActing();
  return (
    <EmptyState
      icon={<Icon name="allocations" />}
      title="No allocations yet"
      actions={
        anyNode
          ? add
          : may("nodes:write") && (
              <Link to="/nodes" search={{ add: "yes" }} className={buttonClasses("primary")}>
                Add a node
              </Link>
            )
      }
    >
      <p>
        An allocation is an OS user on a node. The node's agent creates the user, and removes it when the
        allocation is released.
      </p>
      {!anyNode && <p>Add a node that can host users first: there is none yet.</p>}
    </EmptyState>
  );
}
