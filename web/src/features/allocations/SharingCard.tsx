// The grants of an allocation, for people who manage it: level, expiry, and how to revoke them.

import {
  type Allocation,
  type AllocationGrant,
  listAllocationGrants,
  revokeAllocationGrant,
} from "@holdfast/contracts/endpoints/allocations";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { ShareDialog } from "./ShareDialog.tsx";

export function SharingCard({ allocation }: { allocation: Allocation }) {
  const { org, call } = useActing();
  const [sharing, setSharing] = useState(false);
  const [revoking, setRevoking] = useState<AllocationGrant | null>(null);
  const grants = useQuery({
    queryKey: ["org", org.id, "allocations", allocation.id, "grants"],
    queryFn: ({ signal }) => call(listAllocationGrants, { params: { allocation_id: allocation.id }, signal }),
  });
  const items = grants.data?.items;
  return (
    <Card
      title="Sharing"
      note={
        allocation.status !== "released" && (
          <Button className="-my-1.5 -mr-2" onClick={() => setSharing(true)}>
            Share
          </Button>
        )
      }
    >
      {grants.error && (
        <div className="p-5">
          <ErrorNotice error={grants.error} onRetry={() => void grants.refetch()} />
        </div>
      )}
      {items?.length === 0 && (
        <p className="px-5 py-4 text-ink-muted">Only the owner and administrators have access.</p>
      )}
      <ul aria-label="Shared with">
        {items?.map((grant) => (
          <li
            key={grant.user_id}
            className="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line px-5 py-2.5 last:border-b-0"
          >
            <span className="min-w-0 flex-1">
              <span className="block truncate font-medium">{grant.name}</span>
              <span className="block truncate text-sm text-ink-muted">{grant.email}</span>
            </span>
            <Tag strong={grant.level === "use"}>{grant.level}</Tag>
            <span className="text-sm text-ink-muted">
              expires <When at={grant.expires_at} />
            </span>
            <Button
              look="quiet"
              className="-my-1 -mr-2"
              aria-label={`Revoke access of ${grant.name}`}
              onClick={() => setRevoking(grant)}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      {sharing && <ShareDialog allocation={allocation} onClose={() => setSharing(false)} />}
      {revoking && <RevokeDialog allocation={allocation} grant={revoking} onClose={() => setRevoking(null)} />}
    </Card>
  );
}

type RevokeProps = { allocation: Allocation; grant: AllocationGrant; onClose: () => void };

function RevokeDialog({ allocation, grant, onClose }: RevokeProps) {
  const revoke = useChange({
    send: (call) =>
      call(revokeAllocationGrant, { params: { allocation_id: allocation.id, user_id: grant.user_id } }),
    said: `Revoked the access of ${grant.name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Revoke the access of ${grant.name}?`}
      action="Revoke access"
      onConfirm={() => revoke.mutate("")}
      busy={revoke.isPending}
      error={revoke.error}
    >
      <p>
        {grant.email} no longer sees {allocation.username} on {allocation.node_name}. Their open terminals there
        close within seconds.
      </p>
    </ConfirmDialog>
  );
}
