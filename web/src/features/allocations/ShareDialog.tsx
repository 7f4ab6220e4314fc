// Lets another member see or use an allocation for a limited time.

import {
  type Allocation,
  createAllocationGrant,
  type GrantLevel,
} from "@holdfast/contracts/endpoints/allocations";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { RadioGroup, SelectField } from "../../design/forms/Field.tsx";
import type { PickerOption } from "../../design/forms/Picker.tsx";
import { useChange } from "../../use-change.ts";
import { MemberField } from "./MemberField.tsx";

const levels: { value: GrantLevel; label: string }[] = [
  { value: "view", label: "View: see the allocation and its state" },
  { value: "use", label: "Use: also open terminals" },
];

const HOUR = 3_600;
const durations = [
  { seconds: HOUR, label: "1 hour" },
  { seconds: 24 * HOUR, label: "1 day" },
  { seconds: 7 * 24 * HOUR, label: "7 days" },
  { seconds: 30 * 24 * HOUR, label: "30 days" },
  { seconds: 90 * 24 * HOUR, label: "90 days" },
];

export function ShareDialog({ allocation, onClose }: { allocation: Allocation; onClose: () => void }) {
  const [member, setMember] = useState<PickerOption | null>(null);
  const [level, setLevel] = useState<GrantLevel>("view");
  const [seconds, setSeconds] = useState(7 * 24 * HOUR);
  const { username, node_name } = allocation;
  const share = useChange({
    send: (call) =>
      call(createAllocationGrant, {
        params: { allocation_id: allocation.id },
        body: { user_id: member?.id ?? "", level, expires_in_seconds: seconds },
      }),
    said: `Shared ${username} on ${node_name}`,
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Share ${username} on ${node_name}`}
      description="Only the owner and administrators can release it or share it further."
      action="Share"
      mutation={share}
    >
      <MemberField
        label="Member"
        value={member}
        onChange={setMember}
        ofRole="member"
        except={allocation.owner?.id}
        hint="Owners and admins of the organization already have access."
      />
      <RadioGroup legend="Access" options={levels} value={level} onChange={setLevel} />
      <SelectField
        label="For"
        value={seconds}
        onChange={(event) => setSeconds(Number(event.currentTarget.value))}
        hint="You can revoke it at any time."
      >
        {durations.map((duration) => (
          <option key={duration.seconds} value={duration.seconds}>
            {duration.label}
          </option>
        ))}
      </SelectField>
    </FormDialog>
  );
}
