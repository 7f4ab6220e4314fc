// Asks for confirmation before an allocation is released.

import { type Allocation, releaseAllocation } from "@holdfast/contracts/endpoints/allocations";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useChange } from "../../use-change.ts";

export function ReleaseDialog({ allocation, onClose }: { allocation: Allocation; onClose: () => void }) {
  const { username, node_name } = allocation;
  const release = useChange({
    send: (call) => call(releaseAllocation, { params: { allocation_id: allocation.id } }),
    said: `Release of ${username} on ${node_name} requested`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Release ${username} on ${node_name}?`}
      action="Release allocation"
      onConfirm={() => release.mutate("")}
      busy={release.isPending}
      error={release.error}
    >
      {allocation.own_account ? (
        <p>
          {username} is the agent's own account, so the account and its files are kept. Only this allocation ends.
        </p>
      ) : (
        <p>
          The terminals of {username} close, and the user is removed from {node_name} with its home directory. This
          cannot be undone.
        </p>
      )}
    </ConfirmDialog>
  );
}
