// Invites a person. The result is a link that is shown once, for the inviter to send.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import type { Role } from "@holdfast/contracts/public/permissions";
import { useState } from "react";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { ShownOnceDialog } from "../../design/dialogs/ShownOnceDialog.tsx";
import { TextField } from "../../design/forms/Field.tsx";
import { When } from "../../design/values/When.tsx";
import { useChange } from "../../use-change.ts";
import { RoleField } from "./RoleField.tsx";

export function InviteDialog({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [invited, setInvited] = useState<AnswerOf<typeof inviteMember> | null>(null);
  const invite = useChange({
    send: (call, idempotencyKey) => call(inviteMember, { body: { email, role }, idempotencyKey }),
    onDone: setInvited,
  });
  if (invited) {
    return (
      <ShownOnceDialog
        onClose={onClose}
        title={`Invitation for ${invited.email}`}
        label="Invitation link"
        value={invited.url}
      >
        Give this link to {invited.email} over a channel you trust: whoever opens it first joins as {invited.role}.
        It works once and expires <When at={invited.expires_at} />.
      </ShownOnceDialog>
    );
  }
  return (
    <FormDialog
      open
      onClose={onClose}
      title="Invite member"
      description="Creates a link for you to send. Holdfast sends no email."
      action="Create invitation"
      mutation={invite}
    >
      <TextField
        label="Email"
        type="email"
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
        autoComplete="off"
        required
      />
      <RoleField value={role} onChange={setRole} />
    </FormDialog>
  );
}
