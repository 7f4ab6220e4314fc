// Asks for confirmation before a receiver is removed.

import { type Receiver, removeReceiver } from "@holdfast/contracts/endpoints/notify";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { useChange } from "../../use-change.ts";

export function RemoveReceiverDialog({ receiver, onClose }: { receiver: Receiver; onClose: () => void }) {
  const remove = useChange({
    send: (call) => call(removeReceiver, { params: { receiver_id: receiver.id } }),
    said: `Removed ${receiver.address}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Remove ${receiver.address}?`}
      action="Remove receiver"
      onConfirm={() => remove.mutate("")}
      busy={remove.isPending}
      error={remove.error}
    >
      <p>It gets no further messages. Those that it has not accepted yet are cancelled. Its history is kept.</p>
    </ConfirmDialog>
  );
}
