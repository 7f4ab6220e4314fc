// Creates one-time links. A new link for the same purpose replaces the previous one. The secret goes
// into the URL's fragment, which browsers do not send to servers or into Referer headers.

import type { Role } from "@holdfast/contracts/public/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";
import { makeSecret } from "../mechanisms/secrets.ts";

export type NewLink = { id: string; secret: string; expiresAt: Date };

const ADMIN_LINK_LIFETIME = "15 minutes";
const INVITATION_LIFETIME = "7 days";

export function linkUrl(baseUrl: string, secret: string): string {
  return `${baseUrl}/link#${secret}`;
}

/** One at a time for an address. Returns the role of the invitation that a new one replaces. */
export async function lockInvitation(tx: Tx, orgId: string, email: string): Promise<Role | undefined> {
  await lock(tx, `invitation ${orgId} ${email}`);
  const [live] = await tx<{ role: Role }[]>`
    SELECT role FROM one_time_links
    WHERE org_id = ${orgId} AND email = ${email} AND used_at IS NULL AND replaced_at IS NULL AND expires_at > now()`;
  return live?.role;
}

export type InvitationRow = { id: string; email: string; role: Role; created_at: Date; expires_at: Date };

/** Those that can still be used, newest first. Runs confined to one organization. */
export async function selectInvitations(
  tx: Tx,
  page: { before: string; limit: number },
): Promise<InvitationRow[]> {
  return tx<InvitationRow[]>`
    SELECT id, email, role, created_at, expires_at FROM one_time_links
    WHERE id < ${page.before} AND used_at IS NULL AND replaced_at IS NULL AND expires_at > now()
    ORDER BY id DESC LIMIT ${page.limit + 1}`;
}

export async function selectInvitation(tx: Tx, id: string): Promise<InvitationRow | undefined> {
  const [row] = await tx<InvitationRow[]>`
    SELECT id, email, role, created_at, expires_at FROM one_time_links
    WHERE id = ${id} AND used_at IS NULL AND replaced_at IS NULL`;
  return row;
}

export async function endInvitation(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE one_time_links SET replaced_at = now() WHERE id = ${id} AND used_at IS NULL`;
}

/** Those that would set another password for this account. */
export async function endLinksTo(tx: Tx, userId: string): Promise<void> {
  await tx`
    UPDATE one_time_links SET replaced_at = now()
    WHERE user_id = ${userId} AND used_at IS NULL AND replaced_at IS NULL`;
}

export async function createInvitation(
  tx: Tx,
  invitation: { orgId: string; email: string; role: Role; createdBy: string | null; parentId: string | null },
): Promise<NewLink> {
  await tx`
    UPDATE one_time_links SET replaced_at = now()
    WHERE org_id = ${invitation.orgId} AND email = ${invitation.email} AND used_at IS NULL AND replaced_at IS NULL`;
  return insertLink(tx, { purpose: "invitation", userId: null, lifetime: INVITATION_LIFETIME, ...invitation });
}

/** For the first administrator (`user` null) or for one who exists. Runs as the system role. */
export async function createAdminLink(
  tx: Tx,
  user: { id: string; email: string } | null,
  createdBy: string | null,
): Promise<NewLink> {
  await lock(tx, `admin link ${user?.id ?? "first"}`);
  await tx`
    UPDATE one_time_links SET replaced_at = now()
    WHERE org_id IS NULL AND user_id IS NOT DISTINCT FROM ${user?.id ?? null}
      AND used_at IS NULL AND replaced_at IS NULL`;
  return insertLink(tx, {
    purpose: user ? "sign_in" : "first_admin",
    orgId: null,
    userId: user?.id ?? null,
    email: user?.email ?? null,
    role: null,
    createdBy,
    parentId: null,
    lifetime: ADMIN_LINK_LIFETIME,
  });
}

async function insertLink(
  tx: Tx,
  link: {
    purpose: "first_admin" | "sign_in" | "invitation";
    orgId: string | null;
    userId: string | null;
    email: string | null;
    role: Role | null;
    createdBy: string | null;
    parentId: string | null;
    lifetime: string;
  },
): Promise<NewLink> {
  const id = uuidv7();
  const { secret, hash } = makeSecret("link");
  const [row] = await tx<{ expires_at: Date }[]>`
    INSERT INTO one_time_links (id, org_id, purpose, secret_hash, user_id, email, role, created_by, parent_id, expires_at)
    VALUES (${id}, ${link.orgId}, ${link.purpose}, ${hash}, ${link.userId}, ${link.email}, ${link.role},
            ${link.createdBy}, ${link.parentId}, now() + ${link.lifetime}::interval)
    RETURNING expires_at`;
  if (!row) throw new Error("the link was not stored");
  return { id, secret, expiresAt: row.expires_at };
}

async function lock(tx: Tx, name: string): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
}
