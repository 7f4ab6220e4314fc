// The organization's nodes: the state of the fleet, its problems, and a paged table of all nodes.

import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { useActing } from "../../session.ts";
import { FleetCard } from "../fleet/FleetCard.tsx";
import { Forecast } from "../fleet/Forecast.tsx";
import { PAGE_SIZE, useFleet, useNodePage } from "../fleet/queries.ts";
import { BrakeNotice, ControlPlaneSuspicion } from "../fleet/Troubles.tsx";
import { count, nodesInWords } from "../fleet/words.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { AddNodeDialog } from "./AddNodeDialog.tsx";
import { EnrollmentTokens } from "./EnrollmentTokens.tsx";
import { isNarrowed, listFilter, type NodeFilters } from "./filters.ts";
import { NodeFilterBar } from "./NodeFilterBar.tsx";
import { NodeTable } from "./NodeTable.tsx";
import { RecoveryBundles } from "./RecoveryBundles.tsx";

const route = getRouteApi("/signed-in/nodes");

export function NodesPage() {
  const { org, may } = useActing();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const change = (next: NodeFilters) => void navigate({ search: next, replace: true, resetScroll: false });
  const { data: fleet, error, refetch } = useFleet();
  const writable = may("nodes:write");
  const add = writable && (
    <Button look="primary" onClick={() => change({ ...filters, add: "yes" })}>
      <Icon name="plus" />
      Add a node
    </Button>
  );
  const some = fleet && (fleet.total > 0 || filters.state === "retired");
  return (
    <>
      <PageHeader title="Nodes" actions={some && add}>
        Machines enrolled in {org.name}. <LiveMark />
      </PageHeader>
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!fleet && !error && <Loading what="nodes" />}
      {fleet && !some && <NoNodes add={add} />}
      {fleet && some && (
        <>
          <ControlPlaneSuspicion suspicion={fleet.own_side} />
          <BrakeNotice brake={fleet.brake} />
          <FleetCard fleet={fleet} filters={filters} onChange={change} />
          <NodeFilterBar fleet={fleet} filters={filters} onChange={change} />
          <Pages key={JSON.stringify(listFilter(filters))} filters={filters} onChange={change} />
          {may("nodes:diagnose") && <Forecast />}
        </>
      )}
      {writable && <EnrollmentTokens />}
      {writable && <RecoveryBundles />}
      {writable && filters.add && <AddNodeDialog onClose={() => change({ ...filters, add: undefined })} />}
    </>
  );
}

/** The worst first, retired ones by age, one page at a time. The cursors of earlier pages are kept for going back. */
function Pages({ filters, onChange }: { filters: NodeFilters; onChange: (filters: NodeFilters) => void }) {
  const [cursors, setCursors] = useState<string[]>([]);
  const page = useNodePage(listFilter(filters), cursors.at(-1));
  if (page.error) return <ErrorNotice error={page.error} onRetry={() => void page.refetch()} />;
  if (!page.data) return <Loading what="nodes" />;
  const { items, next_cursor, total } = page.data;
  if (items.length === 0 && cursors.length === 0)
    return <NoMatch filters={filters} onClear={() => onChange({})} />;
  const first = cursors.length * PAGE_SIZE + 1;
  const all =
    filters.state === "retired"
      ? `${count(total)} retired ${total === 1 ? "node" : "nodes"}`
      : nodesInWords(total);
  const range = items.length === 1 ? count(first) : `${count(first)}–${count(first + items.length - 1)}`;
  return (
    <>
      <NodeTable nodes={items} />
      <nav aria-label="Pages of nodes" className="mt-4 flex flex-wrap items-center gap-3 text-sm text-ink-muted">
        {(cursors.length > 0 || next_cursor) && (
          <>
            <Button disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>
              Previous
            </Button>
            <Button
              disabled={!next_cursor}
              busy={page.isPlaceholderData}
              onClick={() => next_cursor && setCursors([...cursors, next_cursor])}
            >
              Next
            </Button>
          </>
        )}
        <p role="status">
          Showing {range} of {all}
          {items.length > 1 && (filters.state === "retired" ? ", newest first" : ", worst first")}
        </p>
      </nav>
    </>
  );
}

function NoNodes({ add }: { add: React.ReactNode }) {
  const { org } = useActing();
  return (
    <EmptyState icon={<Icon name="nodes" />} title="No nodes yet" actions={add}>
      <p>
        A node is a machine with a small agent. The agent connects outbound, so no port has to be opened. It
        authenticates with its own certificate and runs only tasks signed by this server.
      </p>
      {add ? (
        <p>Create a token, run one command on the machine, and the node appears on this page.</p>
      ) : (
        <p>
          Your role in {org.name} is <Tag>{org.role}</Tag>. Ask an admin or owner to add a node.
        </p>
      )}
    </EmptyState>
  );
}

function NoMatch({ filters, onClear }: { filters: NodeFilters; onClear: () => void }) {
  return (
    <EmptyState title="No node matches" actions={<Button onClick={onClear}>Show all nodes</Button>}>
      <p>
        {filters.search ? `No name, address or id contains “${filters.search}”` : "No node"}
        {isNarrowed({ ...filters, search: undefined }) ? " within the other filters" : ""}.
      </p>
    </EmptyState>
  );
}
