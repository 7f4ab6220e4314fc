// Members over HTTP.

import {
  cancelInvitation,
  inviteMember,
  listInvitations,
  listMembers,
  listMemberTokens,
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
import { endIssued, endingOf, listIssued } from "../tokens/issued.ts";
import { makerOf } from "../tokens/queries.ts";
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
    const rows = await selectMembers(tx, query, { before, limit: query.limit });
    return toPage(listMembers, rows, { limit: query.limit, idOf: (row) => row.user_id, toItem: toMember });
  });

  orgRoute(api, inviteMember, async ({ actor, body, org, tx, baseUrl, touched }) => {
    requireRank({ actor, org }, body.role);
    if (await isMember(tx, body.email)) {
      throw new ApiError("conflict", {
        message: `${body.email} is already a member.`,
        nextStep:
          "They can sign in. If the password is lost, the operator makes a link: `holdfast admin link --email …`.",
      });
    }
    const replaced = await lockInvitation(tx, org.id, body.email);
    if (replaced) requireRank({ actor, org }, replaced);
    const { createdBy, parentId } = await makerOf(tx, actor);
    const link = await createInvitation(tx, { orgId: org.id, createdBy, parentId, ...body });
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

  orgRoute(api, listMemberTokens, async ({ params, query, tx }) => {
    const member = await requireMember(tx, params.user_id);
    return {
      items: await listIssued(tx, { person: member.user_id, ...(query.role ? { keeps: query.role } : {}) }),
    };
  });

  orgRoute(api, updateMember, async (call) => {
    const { actor, params, body, org, tx } = call;
    await lockMembers(tx, org.id);
    const member = await requireMember(tx, params.user_id);
    requireRank({ actor, org }, member.role);
    requireRank({ actor, org }, body.role);
    if (member.role === "owner" && body.role !== "owner") await requireAnotherOwner(tx);
    await setRole(tx, member.user_id, body.role);
    const keeps = { person: member.user_id, keeps: body.role };
    const ended = await endIssued(tx, keeps, endingOf(api, call, "member.update"));
    call.touched(
      { type: "member", id: member.user_id, name: member.email },
      { from: member.role, to: body.role, tokens_ended: ended.length },
    );
    call.afterCommit(api.terminals.watch.look);
    return { ...toMember({ ...member, role: body.role }), ended };
  });

  orgRoute(api, removeMember, async (call) => {
    const { actor, params, org, tx } = call;
    await lockMembers(tx, org.id);
    const member = await requireMember(tx, params.user_id);
    requireRank({ actor, org }, member.role);
    if (member.role === "owner") await requireAnotherOwner(tx);
    const ended = await endIssued(tx, { person: member.user_id }, endingOf(api, call, "member.remove"));
    await deleteMember(tx, member.user_id);
    call.touched({ type: "member", id: member.user_id, name: member.email }, { tokens_ended: ended.length });
    call.afterCommit(api.terminals.watch.look);
    return { ended };
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
