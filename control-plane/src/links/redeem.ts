// Uses one-time links. The link is consumed by one UPDATE, so of two people with the same link
// exactly one succeeds; when anything after that fails, the rollback makes the link usable again.

import type { LinkPurpose } from "@holdfast/contracts/endpoints/sign-in";
import { ApiError } from "@holdfast/contracts/errors";
import type { Role } from "@holdfast/contracts/public/permissions";
import type { Queryable, Tx } from "../database/connect.ts";
import { hashSecret } from "../mechanisms/secrets.ts";
import { insertMembership, insertUser, operators, type UserRow } from "../people/queries.ts";
import { isBacked } from "../tokens/standing.ts";

export type LinkRow = {
  id: string;
  purpose: LinkPurpose;
  org_id: string | null;
  organization: string | null;
  user_id: string | null;
  email: string | null;
  role: Role | null;
  expires_at: Date;
};

/** Checks the link without using it. Throws the exact reason: the holder of a link may know it. */
export async function inspect(db: Queryable, secret: string): Promise<LinkRow> {
  const [row] = await db<(LinkRow & LinkState)[]>`
    SELECT t.id, t.purpose, t.org_id, o.name AS organization, t.user_id, t.email, t.role, t.expires_at,
           t.used_at IS NOT NULL AS used, t.replaced_at IS NOT NULL AS replaced, t.expires_at <= now() AS expired,
           ${isBacked(db, "invitation")} AS backed
    FROM one_time_links t LEFT JOIN organizations o ON o.id = t.org_id
    WHERE t.secret_hash = ${hashSecret(secret)}`;
  if (!row || row.replaced || !row.backed) throw new ApiError("link_unknown");
  if (row.used) throw new ApiError("link_used");
  if (row.expired) throw new ApiError("link_expired");
  return row;
}

/** `backed`: the inviter may still grant the role. */
type LinkState = { used: boolean; replaced: boolean; expired: boolean; backed: boolean };

export async function consume(tx: Tx, secret: string): Promise<void> {
  const used = await tx`
    UPDATE one_time_links t SET used_at = now()
    WHERE secret_hash = ${hashSecret(secret)} AND used_at IS NULL AND replaced_at IS NULL AND expires_at > now()
      AND ${isBacked(tx, "invitation")}
    RETURNING id`;
  if (used.length === 1) return;
  await inspect(tx, secret);
  throw new ApiError("link_used");
}

export type Newcomer = { email: string; name: string; passwordHash: string };

/** The platform's operator and owner of its first organization. */
export async function admitFirstAdmin(tx: Tx, person: Newcomer): Promise<UserRow> {
  // Any constant: only one first administrator is created, however many links exist.
  await tx`SELECT pg_advisory_xact_lock(4017266302)`;
  if ((await operators(tx)).length > 0) throw new ApiError("link_used");
  const user = await addUser(tx, person, { operator: true });
  const [first] = await tx<{ id: string }[]>`SELECT id FROM organizations ORDER BY id LIMIT 1`;
  if (first) await insertMembership(tx, { orgId: first.id, userId: user.id, role: "owner" });
  return user;
}

/** A new account for an invitation, unless the person has created one meanwhile. */
export async function admitInvited(tx: Tx, person: Newcomer): Promise<UserRow> {
  return addUser(tx, person, { operator: false });
}

async function addUser(tx: Tx, person: Newcomer, { operator }: { operator: boolean }): Promise<UserRow> {
  const { email, name, passwordHash } = person;
  const user = await insertUser(tx, { email, name, password_hash: passwordHash, operator });
  if (!user) throw accountExists(email);
  return user;
}

export function accountExists(email: string): ApiError {
  return new ApiError("name_taken", {
    message: `${email} already has an account.`,
    nextStep: "Choose “I have an account”, and enter its password.",
  });
}
