// Members: the people of the organization.

import { listMembers, type Member } from "@holdfast/contracts/endpoints/members";
import { mayGrant } from "@holdfast/contracts/public/permissions";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { Icon } from "../../design/controls/Icon.tsx";
import { MenuItem } from "../../design/controls/Menu.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { RowMenu } from "../../design/lists/RowMenu.tsx";
import { ActionsHeader, Cell, Table } from "../../design/lists/Table.tsx";
import { Tag } from "../../design/values/Tag.tsx";
import { When } from "../../design/values/When.tsx";
import { useListing } from "../../listing.ts";
import { useActing, useMe } from "../../session.ts";
import { Invitations } from "./Invitations.tsx";
import { InviteDialog } from "./InviteDialog.tsx";
import { ChangeRoleDialog, RemoveMemberDialog } from "./MemberDialogs.tsx";
import { Quotas } from "./Quotas.tsx";
import { TabFrame } from "./TabFrame.tsx";

type Open = { dialog: "invite" } | { dialog: "role" | "remove"; member: Member };

export function MembersTab() {
  const me = useMe();
  const { org, call, may } = useActing();
  const listing = useListing<Member>({
    key: ["org", org.id, "members"],
    page: ({ cursor, signal }) => call(listMembers, { query: { cursor }, signal }),
  });
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const writable = may("members:write");
  return (
    <>
      <TabFrame
        title="Members"
        intro="Owners have full control. Admins manage projects, nodes and members. Members use allocations."
        listing={listing}
        action={
          writable && (
            <Button look="primary" onClick={() => setOpen({ dialog: "invite" })}>
              <Icon name="plus" />
              Invite member
            </Button>
          )
        }
        empty={
          <EmptyState title="No members yet">
            <p>You act here as operator. Invite an owner, who can then invite others.</p>
          </EmptyState>
        }
      >
        {(members) => (
          <Table
            label="Members"
            columns={["Name", "Email", "Role", "Joined", ...(writable ? [<ActionsHeader key="actions" />] : [])]}
          >
            {members.map((member) => (
              <tr key={member.user_id}>
                <Cell className="font-medium whitespace-nowrap">
                  {member.name}
                  {member.user_id === me.id && <span className="ml-1.5 font-normal text-ink-muted">(you)</span>}
                </Cell>
                <Cell className="text-ink-muted">{member.email}</Cell>
                <Cell>
                  <Tag strong={member.role === "owner"}>{member.role}</Tag>
                </Cell>
                <Cell className="text-ink-muted">
                  <When at={member.joined_at} />
                </Cell>
                {writable &&
                  (mayGrant(org.role, member.role) ? (
                    <RowMenu label={`Actions for ${member.name}`}>
                      <MenuItem onClick={() => setOpen({ dialog: "role", member })}>Change role</MenuItem>
                      <MenuItem danger onClick={() => setOpen({ dialog: "remove", member })}>
                        Remove
                      </MenuItem>
                    </RowMenu>
                  ) : (
                    <Cell />
                  ))}
              </tr>
            ))}
          </Table>
        )}
      </TabFrame>
      <Invitations />
      <Quotas />
      {open?.dialog === "invite" && <InviteDialog onClose={close} />}
      {open?.dialog === "role" && <ChangeRoleDialog member={open.member} onClose={close} />}
      {open?.dialog === "remove" && <RemoveMemberDialog member={open.member} onClose={close} />}
    </>
  );
}
