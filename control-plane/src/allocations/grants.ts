// SQL of grants: what an owner lets another member do with an allocation, until it expires.

import type { AllocationGrant, GrantLevel } from "@holdfast/contracts/endpoints/allocations";
import type { Tx } from "../database/connect.ts";

export type GrantRow = {
  user_id: string;
  email: string;
  name: string;
  level: GrantLevel;
  granted_by: string;
  granted_at: Date;
  expires_at: Date;
};

export function toGrant(row: GrantRow): AllocationGrant {
  return { ...row, granted_at: row.granted_at.toISOString(), expires_at: row.expires_at.toISOString() };
}

export type NewGrant = {
  orgId: string;
  allocationId: string;
  granteeId: string;
  level: GrantLevel;
  grantedBy: string;
  seconds: number;
};

/** Replaces an earlier grant to the same member. */
export async function upsertGrant(tx: Tx, grant: NewGrant): Promise<void> {
  await tx`
    INSERT INTO allocation_grants (org_id, allocation_id, grantee_id, level, granted_by, expires_at)
    VALUES (${grant.orgId}, ${grant.allocationId}, ${grant.granteeId}, ${grant.level}, ${grant.grantedBy},
      now() + ${grant.seconds} * interval '1 second')
    ON CONFLICT (allocation_id, grantee_id) DO UPDATE SET level = excluded.level, granted_by = excluded.granted_by,
      granted_at = excluded.granted_at, expires_at = excluded.expires_at`;
}

/** Grants that have not expired, the next to expire first. */
export async function selectGrants(tx: Tx, allocationId: string): Promise<GrantRow[]> {
  return tx<GrantRow[]>`
    SELECT g.grantee_id AS user_id, u.email, u.name, g.level, g.granted_by, g.granted_at, g.expires_at
    FROM allocation_grants g JOIN users u ON u.id = g.grantee_id
    WHERE g.allocation_id = ${allocationId} AND g.expires_at > now()
    ORDER BY g.expires_at, g.grantee_id`;
}

/** Removes the grant of one member, or all grants. */
export async function deleteGrants(tx: Tx, allocationId: string, granteeId?: string): Promise<number> {
  const deleted = await tx`
    DELETE FROM allocation_grants
    WHERE allocation_id = ${allocationId} ${granteeId === undefined ? tx`` : tx`AND grantee_id = ${granteeId}`}`;
  return deleted.count;
}
