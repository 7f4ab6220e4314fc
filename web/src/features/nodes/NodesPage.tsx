// The organization's machines: how each is, and what needs a person.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect } from "react";
import { Button } from "../../design/Button.tsx";
import { EmptyState } from "../../design/EmptyState.tsx";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { SelectField } from "../../design/Field.tsx";
import { Icon } from "../../design/Icon.tsx";
import { Loading } from "../../design/Loading.tsx";
import { PageHeader } from "../../design/PageHeader.tsx";
import { SettlingField } from "../../design/SettlingField.tsx";
import { Tag } from "../../design/Tag.tsx";
import { useActing } from "../../session.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { AddNodeDialog } from "./AddNodeDialog.tsx";
import { EnrollmentTokens } from "./EnrollmentTokens.tsx";
import { isShown, type NodeFilters } from "./filters.ts";
import { NodeTable } from "./NodeTable.tsx";
import { statusMarks } from "./node-marks.ts";
import { useNodes } from "./queries.ts";

const route = getRouteApi("/signed-in/nodes");

export function NodesPage() {
  const { org, may } = useActing();
  const filters = route.useSearch();
  const navigate = route.useNavigate();
  const change = (next: NodeFilters) => void navigate({ search: next, replace: true });
  const listing = useNodes();
  const { items, hasMore, loadMore, loadingMore } = listing;
  const writable = may("nodes:write");
  // A filter looks at all nodes, not only at those that are here already.
  useEffect(() => {
    if ((filters.name || filters.status) && hasMore && !loadingMore) loadMore();
  }, [filters.name, filters.status, hasMore, loadingMore, loadMore]);
  const shown = items?.filter((node) => isShown(node, filters));
  const add = writable && (
    <Button look="primary" onClick={() => change({ ...filters, add: "yes" })}>
      <Icon name="plus" />
      Add a node
    </Button>
  );
  return (
    <>
      <PageHeader title="Nodes" actions={items && items.length > 0 && add}>
        The machines that {org.name} runs on. <LiveMark />
      </PageHeader>
      {listing.error && <ErrorNotice error={listing.error} onRetry={listing.refresh} />}
      {!items && !listing.error && <Loading what="nodes" />}
      {items?.length === 0 && <NoNodes add={add} />}
      {items && items.length > 0 && (
        <>
          <FilterBar filters={filters} onChange={change} />
          {shown && shown.length > 0 ? (
            <NodeTable nodes={shown} />
          ) : (
            !hasMore && <NoMatch filters={filters} onClear={() => change({})} />
          )}
          <Footer nodes={items} shown={shown ?? []} {...{ hasMore, loadMore, loadingMore }} />
        </>
      )}
      {writable && <EnrollmentTokens />}
      {writable && filters.add && <AddNodeDialog onClose={() => change({ ...filters, add: undefined })} />}
    </>
  );
}

function FilterBar({ filters, onChange }: { filters: NodeFilters; onChange: (filters: NodeFilters) => void }) {
  return (
    <search className="mb-4 grid grid-cols-2 gap-3 sm:flex" aria-label="Filter nodes">
      <SettlingField
        label="Name"
        placeholder="Part of a name"
        value={filters.name ?? ""}
        onSettle={(name) => onChange({ ...filters, name: name || undefined })}
        className="sm:w-64"
      />
      <SelectField
        label="Status"
        value={filters.status ?? ""}
        onChange={(event) =>
          onChange({ ...filters, status: (event.currentTarget.value || undefined) as NodeFilters["status"] })
        }
        className="sm:w-48"
      >
        <option value="">All but retired</option>
        {Object.entries(statusMarks).map(([status, { word }]) => (
          <option key={status} value={status}>
            {word}
          </option>
        ))}
      </SelectField>
    </search>
  );
}

type FooterProps = {
  nodes: Node[];
  shown: Node[];
  hasMore: boolean;
  loadMore: () => void;
  loadingMore: boolean;
};

function Footer({ nodes, shown, hasMore, loadMore, loadingMore }: FooterProps) {
  return (
    <div className="mt-4 flex items-center gap-4 text-sm text-ink-muted">
      {hasMore && (
        <Button busy={loadingMore} onClick={loadMore}>
          Load more
        </Button>
      )}
      <p role="status">
        {shown.length} of {nodes.length}
        {hasMore ? " or more" : ""} {nodes.length === 1 ? "node" : "nodes"} shown
      </p>
    </div>
  );
}

function NoNodes({ add }: { add: React.ReactNode }) {
  const { org } = useActing();
  return (
    <EmptyState icon={<Icon name="nodes" />} title="No nodes yet" actions={add}>
      <p>
        A node is a machine with a small agent on it. The agent dials out, so you open no port for it; it proves
        who it is with a certificate of its own, and runs only tasks that this server has signed.
      </p>
      {add ? (
        <p>Make a token here, run one command on the machine, and watch it appear on this page.</p>
      ) : (
        <p>
          You act in {org.name} as <Tag>{org.role}</Tag>. Admins and owners add nodes; ask one of them.
        </p>
      )}
    </EmptyState>
  );
}

function NoMatch({ filters, onClear }: { filters: NodeFilters; onClear: () => void }) {
  const word = filters.status && statusMarks[filters.status].word.toLowerCase();
  return (
    <EmptyState title="No node matches" actions={<Button onClick={onClear}>Clear filters</Button>}>
      <p>
        {filters.name ? `No name holds “${filters.name}”` : "None"}
        {word ? ` among those that are ${word}` : " among those that are not retired"}.
      </p>
    </EmptyState>
  );
}
