// The audit trail, newest first, with filters in the address bar.

import { listAudit, listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { useListing } from "../../listing.ts";
import { useActing, useMe } from "../../session.ts";
import { AuditFilterBar } from "./AuditFilterBar.tsx";
import { AuditTable } from "./AuditTable.tsx";
import { EventSheet, type ShownEvent } from "./EventSheet.tsx";
import { type AuditFilters, auditQuery, isFiltered } from "./filters.ts";

const route = getRouteApi("/signed-in/audit");

export function AuditPage() {
  const { org, may } = useActing();
  const me = useMe();
  if (may("audit:read") || me.operator) return <Trail />;
  return (
    <>
      <PageHeader title="Audit" />
      <EmptyState icon={<Icon name="audit" />} title="Your role cannot read the audit trail">
        <p>
          Your role in {org.name} is <Tag>{org.role}</Tag>. Admins and owners can read the audit trail. If you need
          it, ask an owner to change your role.
        </p>
      </EmptyState>
    </>
  );
}

function Trail() {
  const me = useMe();
  const { org } = useActing();
  const found = route.useSearch();
  const filters: AuditFilters = me.operator ? found : { ...found, scope: undefined };
  const navigate = route.useNavigate();
  const [shown, setShown] = useState<ShownEvent | null>(null);
  const [refreshedAt, setRefreshedAt] = useState(Date.now);
  const listing = useTrail(filters, refreshedAt);
  const change = (next: AuditFilters) => void navigate({ search: next, replace: true });
  const everywhere = filters.scope === "platform";
  return (
    <>
      <PageHeader
        title="Audit"
        actions={
          <Button busy={listing.refreshing} onClick={() => setRefreshedAt(Date.now())}>
            Refresh
          </Button>
        }
      >
        Who did what in {everywhere ? "all organizations" : org.name}, newest first. Nothing here can be changed or
        deleted.
      </PageHeader>
      <AuditFilterBar filters={filters} onChange={change} offersPlatform={me.operator} />
      {listing.error && <ErrorNotice error={listing.error} onRetry={listing.refresh} />}
      {!listing.items && !listing.error && <Loading what="audit events" />}
      {listing.items?.length === 0 && (
        <Nothing filters={filters} onClear={() => change({ scope: filters.scope })} />
      )}
      {listing.items && listing.items.length > 0 && (
        <>
          <AuditTable
            events={listing.items}
            onShow={setShown}
            everywhere={everywhere}
            organizations={me.organizations}
          />
          <div className="mt-4 flex items-center gap-4 text-sm text-ink-muted">
            {listing.hasMore && (
              <Button busy={listing.loadingMore} onClick={listing.loadMore}>
                Load more
              </Button>
            )}
            <p role="status">
              {listing.items.length} {listing.items.length === 1 ? "event" : "events"} shown
              {listing.hasMore ? "" : ", end of list"}
            </p>
          </div>
        </>
      )}
      <EventSheet
        event={shown}
        onClose={() => setShown(null)}
        onFollow={(correlation_id) => {
          setShown(null);
          change({ correlation_id, scope: filters.scope });
        }}
      />
    </>
  );
}

function useTrail(filters: AuditFilters, refreshedAt: number) {
  const { org, call } = useActing();
  const query = useMemo(() => auditQuery(filters, refreshedAt), [filters, refreshedAt]);
  const everywhere = filters.scope === "platform";
  return useListing<ShownEvent>({
    key: everywhere ? ["platform", "audit", query, refreshedAt] : ["org", org.id, "audit", query, refreshedAt],
    page: ({ cursor, signal }) =>
      everywhere
        ? call(listPlatformAudit, { query: { ...query, cursor }, signal })
        : call(listAudit, { query: { ...query, cursor }, signal }),
  });
}

function Nothing({ filters, onClear }: { filters: AuditFilters; onClear: () => void }) {
  if (!isFiltered(filters)) {
    return (
      <EmptyState icon={<Icon name="audit" />} title="No events yet">
        <p>Every change appears here: who made it, in which role, to what, and whether it was allowed.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No event matches these filters" actions={<Button onClick={onClear}>Clear filters</Button>}>
      <p>
        Choose a longer time range, or remove a filter. An action matches exactly, or all actions of a noun with a
        trailing dot: <Code>token.</Code>
      </p>
    </EmptyState>
  );
}
