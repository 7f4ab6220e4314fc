// Makes another member the owner of an allocation.

import { type Allocation, transferAllocation } from "@holdfast/contracts/endpoints/allocations";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import type { PickerOption } from "../../design/forms/Picker.tsx";
import { useChange } from "../../use-change.ts";
import { MemberField } from "./MemberField.tsx";

export function TransferDialog({ allocation, onClose }: { allocation: Allocation; onClose: () => void }) {
  const [owner, setOwner] = useState<PickerOption | null>(null);
  const { username, node_name } = allocation;
  const transfer = useChange({
    send: (call) =>
      call(transferAllocation, { params: { allocation_id: allocation.id }, body: { owner_id: owner?.id ?? "" } }),
    said: `Transferred ${username} on ${node_name}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Transfer ${username} on ${node_name}`}
      description="The current owner loses access, all grants end and their open terminals close. The user keeps its files and SSH keys."
      action="Transfer"
      mutation={transfer}
    >
      <MemberField label="New owner" value={owner} onChange={setOwner} except={allocation.owner?.id} />
    </FormDialog>
  );
}
