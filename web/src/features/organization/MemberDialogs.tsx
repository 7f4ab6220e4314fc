// Changing a member's role, and removing a member.

import { type Member, removeMember, updateMember } from "@holdfast/contracts/endpoints/members";
import { useState } from "react";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { MemberTokens } from "./MemberTokens.tsx";
import { RoleField } from "./RoleField.tsx";

type MemberDialogProps = { member: Member; onClose: () => void };

export function ChangeRoleDialog({ member, onClose }: MemberDialogProps) {
  const [role, setRole] = useState(member.role);
  const change = useChange({
    send: (call) => call(updateMember, { params: { user_id: member.user_id }, body: { role } }),
    said: `${member.name} is now ${role}`,
    onDone: onClose,
  });
  return (
    <FormDialog open onClose={onClose} title={`Role of ${member.name}`} action="Change role" mutation={change}>
      <RoleField value={role} onChange={setRole} />
      {role !== member.role && <MemberTokens member={member} role={role} />}
    </FormDialog>
  );
}

export function RemoveMemberDialog({ member, onClose }: MemberDialogProps) {
  const { org } = useActing();
  const remove = useChange({
    send: (call) => call(removeMember, { params: { user_id: member.user_id } }),
    said: `Removed ${member.name}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Remove ${member.name}?`}
      action="Remove member"
      onConfirm={() => remove.mutate("")}
      busy={remove.isPending}
      error={remove.error}
    >
      <p>
        {member.email} loses access to {org.name} at once, and their terminals close. You can invite them again.
      </p>
      <MemberTokens member={member} />
    </ConfirmDialog>
  );
}
