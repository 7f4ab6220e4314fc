// Members over HTTP.

import {
  cancelInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  removeMember,
  updateMember,
} from "@holdfast/contracts/endpoints/members";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { requireRank } from "../api/rank.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import {
  createInvitation,
  endInvitation,
  linkUrl,
  lockInvitation,
  selectInvitation,
  selectInvitations,
} from "../links/create.ts";
import { personBehind, revokeTokensOf } from "../tokens/queries.ts";
import {
  countOwners,
  deleteMember,
  isMember,
  lockMembers,
  selectMember,
  selectMembers,
  setRole,
  toMember,
} from "./queries.ts";

export function memberRoutes(api: ApiContext): void {
  orgRoute(api, listMembers, async ({ query, tx }) => {
    const before = pageStart(listMembers, query.cursor);
    const rows = await selectMembers(tx, { before, limit: query.limit });
    return toPage(listMembers, rows, { limit: query.limit, idOf: (row) => row.user_id, toItem: toMember });
  });

  orgRoute(api, inviteMember, async ({ actor, body, org, tx, baseUrl, touched }) => {
    requireRank({ actor, org }, body.role);
    if (await isMember(tx, body.email)) {
      throw new ApiError("conflict", {
        message: `${body.email} is a member already.`,
        nextStep:
          "They can sign in. If the password is lost, the operator makes a link: `holdfast admin link --email …`.",
      });
    }
    const replaced = await lockInvitation(tx, org.id, body.email);
    if (replaced) requireRank({ actor, org }, replaced);
    const link = await createInvitation(tx, { orgId: org.id, createdBy: await personBehind(tx, actor), ...body });
    touched({ type: "invitation", id: link.id, name: body.email }, { role: body.role });
    return { ...body, url: linkUrl(baseUrl, link.secret), expires_at: link.expiresAt.toISOString() };
  });

  orgRoute(api, listInvitations, async ({ query, tx }) => {
    const before = pageStart(listInvitations, query.cursor);
    const rows = await selectInvitations(tx, { before, limit: query.limit });
    return toPage(listInvitations, rows, {
      limit: query.limit,
      idOf: (row) => row.id,
      toItem: (row) => ({
        ...row,
        created_at: row.created_at.toISOString(),
        expires_at: row.expires_at.toISOString(),
      }),
    });
  });

  orgRoute(api, cancelInvitation, async ({ actor, params, org, tx, touched }) => {
    const invitation = await selectInvitation(tx, params.invitation_id);
    if (!invitation) throw new ApiError("not_found");
    requireRank({ actor, org }, invitation.role);
    await endInvitation(tx, invitation.id);
    touched({ type: "invitation", id: invitation.id, name: invitation.email }, { role: invitation.role });
    return undefined;
  });

  orgRoute(api, updateMember, async ({ actor, params, body, org, tx, touched }) => {
    await lockMembers(tx, org.id);
    const member = await requireMember(tx, params.user_id);
    requireRank({ actor, org }, member.role);
    requireRank({ actor, org }, body.role);
    if (member.role === "owner" && body.role !== "owner") await requireAnotherOwner(tx);
    await setRole(tx, member.user_id, body.role);
    touched({ type: "member", id: member.user_id, name: member.email }, { from: member.role, to: body.role });
    return toMember({ ...member, role: body.role });
  });

  orgRoute(api, removeMember, async ({ actor, params, org, tx, touched }) => {
    await lockMembers(tx, org.id);
    const member = await requireMember(tx, params.user_id);
    requireRank({ actor, org }, member.role);
    if (member.role === "owner") await requireAnotherOwner(tx);
    const revoked = await revokeTokensOf(tx, member.user_id);
    await deleteMember(tx, member.user_id);
    touched({ type: "member", id: member.user_id, name: member.email }, { tokens_revoked: revoked });
    return undefined;
  });
}

async function requireMember(tx: Tx, userId: string) {
  const member = await selectMember(tx, userId);
  if (!member) throw new ApiError("not_found");
  return member;
}

async function requireAnotherOwner(tx: Tx): Promise<void> {
  if ((await countOwners(tx)) < 2) throw new ApiError("last_owner");
}
