// SQL of members. Runs confined to one organization, which also confines which users it sees.

import type { Member } from "@holdfast/contracts/endpoints/members";
import type { Role } from "@holdfast/contracts/public/permissions";
import type { Tx } from "../database/connect.ts";

export type MemberRow = { user_id: string; email: string; name: string; role: Role; joined_at: Date };

export function toMember(row: MemberRow): Member {
  return { ...row, joined_at: row.joined_at.toISOString() };
}

export async function selectMembers(
  tx: Tx,
  filter: { search?: string | undefined; role?: Role | undefined },
  page: { before: string; limit: number },
): Promise<MemberRow[]> {
  const search = filter.search?.toLowerCase() ?? null;
  const role = filter.role ?? null;
  return tx<MemberRow[]>`
    SELECT m.user_id, u.email, u.name, m.role, m.joined_at FROM memberships m JOIN users u ON u.id = m.user_id
    WHERE m.user_id < ${page.before} AND (${role}::text IS NULL OR m.role = ${role})
      AND (${search}::text IS NULL OR strpos(lower(u.name), ${search}) > 0 OR strpos(lower(u.email), ${search}) > 0
           OR m.user_id::text = ${search})
    ORDER BY m.user_id DESC LIMIT ${page.limit + 1}`;
}

export async function selectMember(tx: Tx, userId: string): Promise<MemberRow | undefined> {
  const [row] = await tx<MemberRow[]>`
    SELECT m.user_id, u.email, u.name, m.role, m.joined_at FROM memberships m JOIN users u ON u.id = m.user_id
    WHERE m.user_id = ${userId}`;
  return row;
}

export async function isMember(tx: Tx, email: string): Promise<boolean> {
  const rows = await tx`SELECT FROM memberships m JOIN users u ON u.id = m.user_id WHERE u.email = ${email}`;
  return rows.length > 0;
}

/** Serializes changes to an organization's members: each decides on the result of those before. */
export async function lockMembers(tx: Tx, orgId: string): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`members ${orgId}`}, 0))`;
}

export async function countOwners(tx: Tx): Promise<number> {
  const owners = await tx`SELECT FROM memberships WHERE role = 'owner'`;
  return owners.length;
}

export async function setRole(tx: Tx, userId: string, role: Role): Promise<void> {
  await tx`UPDATE memberships SET role = ${role} WHERE user_id = ${userId}`;
}

export async function deleteMember(tx: Tx, userId: string): Promise<void> {
  await tx`DELETE FROM memberships WHERE user_id = ${userId}`;
}
