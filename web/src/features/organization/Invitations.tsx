// Invitations that were not used yet. Their links are not shown again.

import { cancelInvitation, type Invitation, listInvitations } from "@holdfast/contracts/endpoints/members";
import { mayGrant } from "@holdfast/contracts/public/permissions";
import { useState } from "react";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table } from "../../design/lists/Table.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { useListing } from "../../listing.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

/** Renders nothing while there are none. */
export function Invitations() {
  const { org, call, may } = useActing();
  const { items } = useListing<Invitation>({
    key: ["org", org.id, "invitations"],
    page: ({ cursor, signal }) => call(listInvitations, { query: { cursor }, signal }),
  });
  const [cancelling, setCancelling] = useState<Invitation | null>(null);
  if (!items || items.length === 0) return null;
  const writable = may("members:write");
  return (
    <section className="mt-10" aria-labelledby="open-invitations">
      <h2 id="open-invitations" className="mb-3 text-lg font-semibold">
        Open invitations
      </h2>
      <Table
        label="Open invitations"
        columns={["Email", "Role", "Created", "Expires", ...(writable ? [<ActionsHeader key="actions" />] : [])]}
      >
        {items.map((invitation) => (
          <tr key={invitation.id}>
            <Cell className="font-medium">{invitation.email}</Cell>
            <Cell>
              <Tag strong={invitation.role === "owner"}>{invitation.role}</Tag>
            </Cell>
            <Cell className="text-ink-muted">
              <When at={invitation.created_at} />
            </Cell>
            <Cell className="text-ink-muted">
              <When at={invitation.expires_at} />
            </Cell>
            {writable &&
              (mayGrant(org.role, invitation.role) ? (
                <RowMenu label={`Actions for invitation of ${invitation.email}`}>
                  <MenuItem danger onClick={() => setCancelling(invitation)}>
                    Cancel
                  </MenuItem>
                </RowMenu>
              ) : (
                <Cell />
              ))}
          </tr>
        ))}
      </Table>
      {cancelling && <CancelDialog invitation={cancelling} onClose={() => setCancelling(null)} />}
    </section>
  );
}

function CancelDialog({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const cancel = useChange({
    send: (call) => call(cancelInvitation, { params: { invitation_id: invitation.id } }),
    said: `Cancelled the invitation of ${invitation.email}`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={`Cancel the invitation of ${invitation.email}?`}
      action="Cancel invitation"
      onConfirm={() => cancel.mutate("")}
      busy={cancel.isPending}
      error={cancel.error}
    >
      <p>The link stops working at once. You can invite the same person again.</p>
    </ConfirmDialog>
  );
}
