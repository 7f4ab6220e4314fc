// SQL of API tokens. Runs confined to one organization.

import type { ApiToken } from "@holdfast/contracts/endpoints/tokens";
import type { Role, Scope } from "@holdfast/contracts/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";
import { type Actor, userIdOf } from "../people/actor.ts";

export type TokenRow = {
  id: string;
  name: string;
  role: Role;
  scopes: Scope[] | null;
  creator_name: string;
  created_by: string | null;
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
  revoked_at: Date | null;
};

export function toApiToken(row: TokenRow): ApiToken {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    scopes: row.scopes,
    created_by: row.creator_name,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    last_used_at: row.last_used_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
  };
}

export type NewToken = {
  orgId: string;
  name: string;
  hash: Buffer;
  role: Role;
  scopes: Scope[] | null;
  createdBy: string | null;
  creatorName: string;
  parentId: string | null;
  expiresInDays: number | null;
};

export async function insertToken(tx: Tx, token: NewToken): Promise<string> {
  const id = uuidv7();
  await tx`
    INSERT INTO api_tokens (id, org_id, name, secret_hash, role, scopes, created_by, creator_name, parent_id,
                            expires_at)
    VALUES (${id}, ${token.orgId}, ${token.name}, ${token.hash}, ${token.role}, ${token.scopes}, ${token.createdBy},
            ${token.creatorName}, ${token.parentId},
            least(now() + ${token.expiresInDays}::int * interval '1 day',
                  (SELECT expires_at FROM api_tokens WHERE id = ${token.parentId})))`;
  return id;
}

/** `createdBy` narrows to one person's own tokens; null shows all. */
export async function selectTokens(
  tx: Tx,
  createdBy: string | null,
  page: { before: string; limit: number },
): Promise<TokenRow[]> {
  return tx<TokenRow[]>`
    SELECT t.id, t.name, t.role, t.scopes, t.created_by, t.creator_name, t.created_at, t.expires_at,
           t.last_used_at, t.revoked_at
    FROM api_tokens t
    WHERE t.id < ${page.before} AND (${createdBy}::uuid IS NULL OR t.created_by = ${createdBy})
    ORDER BY t.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectToken(tx: Tx, id: string): Promise<TokenRow | undefined> {
  const [row] = await tx<TokenRow[]>`
    SELECT t.id, t.name, t.role, t.scopes, t.created_by, t.creator_name, t.created_at, t.expires_at,
           t.last_used_at, t.revoked_at
    FROM api_tokens t WHERE t.id = ${id}`;
  return row;
}

/** A token stays as it is while another is made with it. Undefined when it was revoked meanwhile. */
export async function holdToken(tx: Tx, id: string): Promise<TokenRow | undefined> {
  const [held] = await tx`SELECT FROM api_tokens WHERE id = ${id} AND revoked_at IS NULL FOR SHARE`;
  return held && selectToken(tx, id);
}

/** With all that were made with it. Revoking twice keeps the first time. */
export async function markRevoked(tx: Tx, id: string): Promise<number> {
  // Waits for a token that is being made with this one, so that the statement after sees it.
  await tx`SELECT FROM api_tokens WHERE id = ${id} FOR UPDATE`;
  const revoked = await tx`
    WITH RECURSIVE family AS (
      SELECT id FROM api_tokens WHERE id = ${id}
      UNION SELECT t.id FROM api_tokens t JOIN family f ON t.parent_id = f.id
    )
    UPDATE api_tokens SET revoked_at = now() WHERE id IN (SELECT id FROM family) AND revoked_at IS NULL RETURNING id`;
  return revoked.length;
}

export async function revokeTokensOf(tx: Tx, userId: string): Promise<number> {
  const revoked = await tx`
    UPDATE api_tokens SET revoked_at = now() WHERE created_by = ${userId} AND revoked_at IS NULL RETURNING id`;
  return revoked.length;
}

/** Who answers for what this actor makes; null is the local operator. */
export async function personBehind(tx: Tx, actor: Actor): Promise<string | null> {
  if (actor.type !== "token") return userIdOf(actor);
  return (await selectToken(tx, actor.id))?.created_by ?? null;
}
