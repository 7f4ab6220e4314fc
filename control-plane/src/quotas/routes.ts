// Quotas over HTTP.

import { getQuotas, type Quotas, updateMemberQuota, updateQuotas } from "@holdfast/contracts/endpoints/quotas";
import { ApiError } from "@holdfast/contracts/errors";
import { type Caller, callerOf } from "../allocations/access.ts";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { selectMember } from "../members/queries.ts";
import { countOrganization, countOwner } from "./room.ts";

export function quotaRoutes(api: ApiContext): void {
  orgRoute(api, getQuotas, (call) => readQuotas(call.tx, call.org.id, callerOf(call)));

  orgRoute(api, updateQuotas, async (call) => {
    const { body, org, tx, touched } = call;
    if (body.organization !== undefined && org.role !== "operator") {
      throw new ApiError("forbidden", {
        message: "Only the platform operator may change the organization's limit.",
        nextStep: "Ask the operator; administrators set `per_owner` and the limits of members.",
        details: { needed: "platform operator" },
      });
    }
    await tx`
      UPDATE organizations SET allocation_limit = coalesce(${body.organization ?? null}, allocation_limit),
        owner_allocation_limit = coalesce(${body.per_owner ?? null}, owner_allocation_limit)
      WHERE id = ${org.id}`;
    touched({ type: "organization", id: org.id }, body);
    return readQuotas(tx, org.id, callerOf(call));
  });

  orgRoute(api, updateMemberQuota, async (call) => {
    const { params, body, org, tx, touched } = call;
    const member = await selectMember(tx, params.user_id);
    if (!member) throw new ApiError("not_found", { message: "Member not found in this organization." });
    await tx`UPDATE memberships SET allocation_limit = ${body.limit} WHERE user_id = ${member.user_id}`;
    touched({ type: "member", id: member.user_id, name: member.email }, body);
    return readQuotas(tx, org.id, callerOf(call));
  });
}

async function readQuotas(tx: Tx, orgId: string, caller: Caller): Promise<Quotas> {
  const [row] = await tx<{ per_owner: number }[]>`
    SELECT owner_allocation_limit AS per_owner FROM organizations WHERE id = ${orgId}`;
  if (!row) throw new ApiError("not_found");
  const owner = { owner_user_id: caller.userId, owner_token_id: caller.tokenId };
  const isOwner = caller.userId !== null || caller.tokenId !== null;
  return {
    organization: await countOrganization(tx, orgId),
    per_owner: row.per_owner,
    own: isOwner ? await countOwner(tx, orgId, owner) : null,
    members: caller.administers ? await selectMemberQuotas(tx, orgId) : [],
  };
}

/** Of members who have a limit of their own, or allocations. */
async function selectMemberQuotas(tx: Tx, orgId: string): Promise<Quotas["members"]> {
  return tx<Quotas["members"]>`
    SELECT m.user_id, u.email, m.allocation_limit IS NOT NULL AS own_limit,
      coalesce(m.allocation_limit, o.owner_allocation_limit) AS limit, coalesce(c.used, 0) AS used
    FROM organizations o JOIN memberships m ON m.org_id = o.id JOIN users u ON u.id = m.user_id
    LEFT JOIN (
      SELECT owner_user_id, count(*)::integer AS used FROM allocations
      WHERE org_id = ${orgId} AND status <> 'released' GROUP BY owner_user_id
    ) c ON c.owner_user_id = m.user_id
    WHERE o.id = ${orgId} AND (m.allocation_limit IS NOT NULL OR c.used IS NOT NULL)
    ORDER BY u.email`;
}
