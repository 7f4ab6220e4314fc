// Uses one-time links. The link is consumed by one UPDATE, so of two people with the same link
// exactly one gets in; when anything after that fails, the transaction gives the link back.

import type { LinkPurpose } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError } from "@holdfast/contracts/errors";
import { mayGrant, type Role } from "@holdfast/contracts/permissions";
import type { Queryable, Tx } from "../database/connect.ts";
import {
  endSessionsOf,
  insertMembership,
  insertUser,
  operators,
  setPassword,
  type UserRow,
} from "../people/queries.ts";
import { hashSecret } from "../people/secrets.ts";

export type LinkRow = {
  id: string;
  purpose: LinkPurpose;
  org_id: string | null;
  organization: string | null;
  user_id: string | null;
  email: string | null;
  role: Role | null;
  expires_at: Date;
  /** The account that the link's email belongs to, if there is one. */
  known_user_id: string | null;
};

/** Looks without using. Throws what is wrong with the link: whoever holds it may know. */
export async function inspect(db: Queryable, secret: string): Promise<LinkRow> {
  const [row] = await db<(LinkRow & LinkState)[]>`
    SELECT l.id, l.purpose, l.org_id, o.name AS organization, l.user_id, l.email, l.role, l.expires_at,
           u.id AS known_user_id, l.used_at IS NOT NULL AS used, l.replaced_at IS NOT NULL AS replaced,
           l.expires_at <= now() AS expired, l.created_by, i.operator AS inviter_operator, m.role AS inviter_role
    FROM one_time_links l
    LEFT JOIN organizations o ON o.id = l.org_id
    LEFT JOIN users u ON u.email = l.email
    LEFT JOIN users i ON i.id = l.created_by
    LEFT JOIN memberships m ON m.user_id = l.created_by AND m.org_id = l.org_id
    WHERE l.secret_hash = ${hashSecret(secret)}`;
  if (!row || row.replaced || !stillGranted(row)) throw new ApiError("link_unknown");
  if (row.used) throw new ApiError("link_used");
  if (row.expired) throw new ApiError("link_expired");
  return row;
}

type LinkState = {
  used: boolean;
  replaced: boolean;
  expired: boolean;
  created_by: string | null;
  inviter_operator: boolean | null;
  inviter_role: Role | null;
};

/** An invitation is worth what its maker may grant now: it ends when they leave or are lowered. */
function stillGranted(link: LinkRow & LinkState): boolean {
  if (link.created_by === null || link.role === null || link.inviter_operator) return true;
  return link.inviter_role !== null && mayGrant(link.inviter_role, link.role);
}

export async function consume(tx: Tx, secret: string): Promise<void> {
  const used = await tx`
    UPDATE one_time_links SET used_at = now()
    WHERE secret_hash = ${hashSecret(secret)} AND used_at IS NULL AND replaced_at IS NULL AND expires_at > now()
    RETURNING id`;
  if (used.length === 1) return;
  await inspect(tx, secret);
  throw new ApiError("link_used");
}

export type Newcomer = { email: string; name: string; passwordHash: string };

/** The platform's operator and owner of its first organization. */
export async function admitFirstAdmin(tx: Tx, person: Newcomer): Promise<UserRow> {
  // Any constant: lets only one first administrator be made, whatever links are about.
  await tx`SELECT pg_advisory_xact_lock(4017266302)`;
  if ((await operators(tx)).length > 0) throw new ApiError("link_used");
  const user = await addUser(tx, person, { operator: true });
  const [first] = await tx<{ id: string }[]>`SELECT id FROM organizations ORDER BY id LIMIT 1`;
  if (first) await insertMembership(tx, { orgId: first.id, userId: user.id, role: "owner" });
  return user;
}

export async function resetPassword(tx: Tx, userId: string, passwordHash: string): Promise<void> {
  await setPassword(tx, userId, passwordHash);
  await endSessionsOf(tx, userId);
}

/** A new account for an invitation, unless the person made one meanwhile. */
export async function admitInvited(tx: Tx, person: Newcomer): Promise<UserRow> {
  return addUser(tx, person, { operator: false });
}

async function addUser(tx: Tx, person: Newcomer, { operator }: { operator: boolean }): Promise<UserRow> {
  const { email, name, passwordHash } = person;
  const user = await insertUser(tx, { email, name, password_hash: passwordHash, operator });
  if (!user) throw new ApiError("name_taken", { message: `${email} has an account already; sign in with it.` });
  return user;
}
