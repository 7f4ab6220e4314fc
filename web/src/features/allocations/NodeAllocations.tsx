// The allocations of one node.

import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { useActing } from "../../session.ts";
import { AllocationTable } from "./AllocationTable.tsx";
import { NewAllocationDialog } from "./NewAllocationDialog.tsx";
import { useAllocations } from "./queries.ts";

export function NodeAllocations({ node }: { node: NodeDetail }) {
  const { may } = useActing();
  const listing = useAllocations({ node_id: node.id });
  const [making, setMaking] = useState(false);
  const held = listing.items?.filter(({ status }) => status !== "released");
  const add = may("allocations:write") && node.status === "active" && (
    <Button className="-my-2" onClick={() => setMaking(true)}>
      <Icon name="plus" />
      New allocation
    </Button>
  );
  return (
    <Card title="Allocations" note={add}>
      {listing.error && (
        <div className="p-5">
          <ErrorNotice error={listing.error} onRetry={listing.refresh} />
        </div>
      )}
      {held?.length === 0 && <p className="px-5 py-4 text-ink-muted">No allocations on this node.</p>}
      {held && held.length > 0 && (
        <AllocationTable allocations={held} showsNode={false} className="rounded-t-none border-0" />
      )}
      {making && <NewAllocationDialog nodeId={node.id} onClose={() => setMaking(false)} />}
    </Card>
  );
}
