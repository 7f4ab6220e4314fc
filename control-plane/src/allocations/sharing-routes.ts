// Who else may reach an allocation, over HTTP: grants, and another owner. Removed access ends at once:
// terminals/access.ts closes open terminals.

import {
  createAllocationGrant,
  listAllocationGrants,
  revokeAllocationGrant,
  transferAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { type MemberRow, selectMember } from "../members/queries.ts";
import { nameOf } from "../people/actor.ts";
import { requireRoom } from "../quotas/room.ts";
import { callerOf } from "./access.ts";
import { deleteGrants, selectGrants, toGrant, upsertGrant } from "./grants.ts";
import { changeOwner, type SeenRow } from "./queries.ts";
import { lockForChange, presentAllocation, readAllocation } from "./read.ts";

export function sharingRoutes(api: ApiContext): void {
  orgRoute(api, createAllocationGrant, async (call) => {
    const { params, body, org, actor, tx, touched, afterCommit } = call;
    const row = await lockForChange(tx, callerOf(call), params.allocation_id);
    const member = await requireMember(tx, body.user_id);
    refuseUseless(row, member);
    const { level, expires_in_seconds: seconds } = body;
    const grant = { orgId: org.id, allocationId: row.id, granteeId: member.user_id, grantedBy: nameOf(actor) };
    await upsertGrant(tx, { ...grant, level, seconds });
    const made = (await selectGrants(tx, row.id)).find(({ user_id }) => user_id === member.user_id);
    if (!made) throw new Error("a grant was stored but not found");
    const details = { grantee_id: member.user_id, grantee: member.email, level };
    touched(targetOf(row), { ...details, expires_at: made.expires_at.toISOString() });
    // A lower level than before may close terminals.
    afterCommit(() => api.allocations.changed(row.id, undefined));
    return toGrant(made);
  });

  orgRoute(api, listAllocationGrants, async (call) => {
    const { params, tx } = call;
    await readAllocation(tx, callerOf(call), params.allocation_id, "manage");
    return { items: (await selectGrants(tx, params.allocation_id)).map(toGrant) };
  });

  orgRoute(api, revokeAllocationGrant, async (call) => {
    const { params, tx, touched, afterCommit } = call;
    const row = await lockForChange(tx, callerOf(call), params.allocation_id);
    const member = await selectMember(tx, params.user_id);
    const ended = await deleteGrants(tx, row.id, params.user_id);
    if (ended === 0)
      throw new ApiError("not_found", { message: "The allocation is not shared with this member." });
    touched(targetOf(row), { grantee_id: params.user_id, grantee: member?.email ?? null });
    afterCommit(() => api.allocations.changed(row.id, undefined));
    return undefined;
  });

  orgRoute(api, transferAllocation, async (call) => {
    const { params, body, org, tx, touched, afterCommit } = call;
    const caller = callerOf(call);
    const row = await lockForChange(tx, caller, params.allocation_id);
    const member = await requireMember(tx, body.owner_id);
    const changes = row.owner_user_id !== member.user_id;
    if (changes && row.status !== "released") await requireRoom(tx, org.id, { owner_user_id: member.user_id });
    if (changes) await changeOwner(tx, row.id, { userId: member.user_id, name: member.email });
    const grantsEnded = changes ? await deleteGrants(tx, row.id) : 0;
    touched(targetOf(row), { from: row.owner_name, to: member.email, grants_ended: grantsEnded });
    afterCommit(() => api.allocations.changed(row.id, undefined));
    return presentAllocation(caller, await readAllocation(tx, caller, row.id, "view"));
  });
}

/** A grant to somebody with full access would change nothing, and neither would its end. */
function refuseUseless(row: SeenRow, member: MemberRow): void {
  if (row.owner_user_id !== member.user_id && member.role === "member") return;
  const why =
    row.owner_user_id === member.user_id ? "owns the allocation" : `is ${member.role} of the organization`;
  throw new ApiError("conflict", {
    message: `${member.email} ${why} and has full access already.`,
    nextStep: "Share it with another member.",
  });
}

async function requireMember(tx: Tx, userId: string): Promise<MemberRow> {
  const member = await selectMember(tx, userId);
  if (!member) throw new ApiError("not_found", { message: "Member not found in this organization." });
  return member;
}

function targetOf({ id, username, node_name }: SeenRow) {
  return { type: "allocation", id, name: `${username}@${node_name}` };
}
