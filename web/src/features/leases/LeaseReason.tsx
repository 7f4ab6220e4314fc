// Why a lease ended, or what keeps it from ending: what happened and what to do now.

import type { Lease } from "@holdfast/contracts/endpoints/leases";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";

export function LeaseReason({ lease }: { lease: Lease }) {
  const { reason, status } = lease;
  if (!reason) return <p className="text-sm text-ink-muted">{leaseStateTitles[status].meaning}</p>;
  const look = status === "failed" ? "failed" : status === "orphaned" ? "degraded" : "unknown";
  return (
    <Notice state={look} title={reason.message}>
      <p>
        <Prose text={reason.next_step} />
      </p>
      <p className="mt-1 font-mono text-sm text-ink-muted">{reason.code}</p>
    </Notice>
  );
}
