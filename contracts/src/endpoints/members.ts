// Members: people of an organization. A person without an account gets a one-time link, which the
// inviter hands over; Holdfast sends no mail.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Email, Id, Text, Time } from "../fields.ts";
import { IssuedToken } from "../public/issued-tokens.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { Role } from "../public/permissions.ts";

export const Member = z.strictObject({
  user_id: Id,
  email: z.string(),
  name: z.string(),
  role: Role,
  joined_at: Time,
});
export type Member = z.infer<typeof Member>;

const params = z.strictObject({ user_id: Id });

export const listMembers = endpoint({
  name: "listMembers",
  noun: "members",
  method: "GET",
  path: "/v1/members",
  summary: "List the organization's members",
  access: { scope: "members:read" },
  query: PageQuery.extend({
    search: Text.min(1).max(100).optional().describe("Part of the name or email address, or the complete id."),
    role: Role.optional(),
  }),
  answer: pageOf(Member),
});

export const inviteMember = endpoint({
  name: "inviteMember",
  noun: "members",
  method: "POST",
  path: "/v1/invitations",
  summary: "Invite a person by a one-time link",
  description:
    "Returns the link, which works once, within 7 days. The secret is in its fragment and is not shown again.",
  access: { scope: "members:write" },
  action: "member.invite",
  creates: true,
  body: z.strictObject({ email: Email, role: Role.default("member") }),
  answer: z.strictObject({ email: z.string(), role: Role, url: z.string(), expires_at: Time }),
  errors: ["conflict"],
});

export const Invitation = z.strictObject({
  id: Id,
  email: z.string(),
  role: Role,
  created_at: Time,
  expires_at: Time,
});
export type Invitation = z.infer<typeof Invitation>;

export const listInvitations = endpoint({
  name: "listInvitations",
  noun: "members",
  method: "GET",
  path: "/v1/invitations",
  summary: "List the invitations that can still be used",
  access: { scope: "members:read" },
  query: PageQuery,
  answer: pageOf(Invitation),
});

export const cancelInvitation = endpoint({
  name: "cancelInvitation",
  noun: "members",
  method: "DELETE",
  path: "/v1/invitations/{invitation_id}",
  summary: "Cancel an invitation; its link stops working immediately",
  access: { scope: "members:write" },
  action: "member.cancel_invitation",
  params: z.strictObject({ invitation_id: Id }),
});

const Ended = z
  .array(IssuedToken)
  .describe("The tokens that ended with the change. Each has its own audit event.");

export const listMemberTokens = endpoint({
  name: "listMemberTokens",
  noun: "members",
  method: "GET",
  path: "/v1/members/{user_id}/tokens",
  summary: "List the tokens that would end with a member",
  description:
    "All tokens that the member created here and that can still be used: API tokens, pairing and bootstrap tokens, " +
    "invitations. Removing the member ends them. With `role`, only those that end if the member gets that role.",
  access: { scope: "members:write" },
  params,
  query: z.strictObject({ role: Role.optional() }),
  answer: z.strictObject({ items: z.array(IssuedToken) }),
});

export const updateMember = endpoint({
  name: "updateMember",
  noun: "members",
  method: "PATCH",
  path: "/v1/members/{user_id}",
  summary: "Change a member's role",
  description:
    "Tokens of the member that need a higher role than the new one end, as do tokens created with those.",
  access: { scope: "members:write" },
  action: "member.update",
  params,
  body: z.strictObject({ role: Role }),
  answer: Member.extend({ ended: Ended }),
  errors: ["last_owner"],
});

export const removeMember = endpoint({
  name: "removeMember",
  noun: "members",
  method: "DELETE",
  path: "/v1/members/{user_id}",
  summary: "Remove a member and end every token they created",
  description:
    "API tokens, pairing and bootstrap tokens and invitations that the member created in this organization end immediately, " +
    "and their terminals close within seconds. A node that rejoins with such a bootstrap token needs a new one.",
  access: { scope: "members:write" },
  action: "member.remove",
  params,
  answer: z.strictObject({ ended: Ended }),
  errors: ["last_owner"],
});
