// Whether another allocation fits. Creates and transfers in one organization come one after the other: the lock on
// the organization's row is held until the transaction ends, and the count after it sees what the one before stored.

import { ApiError } from "@holdfast/contracts/errors";
import type { Tx } from "../database/connect.ts";

export type QuotaOwner = { owner_user_id: string | null; owner_token_id?: string | null };

type Counts = { limit: number; used: number };

/** Throws when the organization or the owner has no room for one more. A new allocation without an owner counts for the organization only. */
export async function requireRoom(
  tx: Tx,
  orgId: string,
  owner: QuotaOwner,
  options = { isNew: false },
): Promise<void> {
  await tx`SELECT FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`;
  if (options.isNew) {
    const organization = await countOrganization(tx, orgId);
    if (organization.used >= organization.limit) throw exceeded("organization", organization);
  }
  if (owner.owner_user_id === null && (owner.owner_token_id ?? null) === null) return;
  const own = await countOwner(tx, orgId, owner);
  if (own.used >= own.limit) throw exceeded("owner", own);
}

export async function countOrganization(tx: Tx, orgId: string): Promise<Counts> {
  const [row] = await tx<Counts[]>`
    SELECT o.allocation_limit AS limit,
      (SELECT count(*)::integer FROM allocations a WHERE a.org_id = o.id AND a.status <> 'released') AS used
    FROM organizations o WHERE o.id = ${orgId}`;
  if (!row) throw new ApiError("not_found");
  return row;
}

export async function countOwner(tx: Tx, orgId: string, owner: QuotaOwner): Promise<Counts> {
  const { owner_user_id, owner_token_id = null } = owner;
  const [row] = await tx<Counts[]>`
    SELECT coalesce(m.allocation_limit, o.owner_allocation_limit) AS limit,
      (SELECT count(*)::integer FROM allocations a WHERE a.org_id = o.id AND a.status <> 'released'
        AND (a.owner_user_id = ${owner_user_id}::uuid OR a.owner_token_id = ${owner_token_id}::uuid)) AS used
    FROM organizations o LEFT JOIN memberships m ON m.org_id = o.id AND m.user_id = ${owner_user_id}::uuid
    WHERE o.id = ${orgId}`;
  if (!row) throw new ApiError("not_found");
  return row;
}

function exceeded(scope: "organization" | "owner", { limit, used }: Counts): ApiError {
  const whose = scope === "organization" ? "The organization" : "The owner";
  const raise =
    scope === "organization"
      ? "ask the platform operator to raise the limit: `holdfast quota set --organization <count>`"
      : "ask an administrator to raise the limit: `holdfast quota set --member <email> --limit <count>`";
  return new ApiError("quota_exceeded", {
    message: `${whose} has ${used} of at most ${limit} allocations. All count that are not released.`,
    nextStep: `Release one that is no longer needed, or ${raise}.`,
    details: { scope, limit, used },
  });
}
