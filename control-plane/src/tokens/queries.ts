// SQL of API tokens. Runs confined to one organization.

import type { ApiToken } from "@holdfast/contracts/endpoints/tokens";
import type { Role, Scope } from "@holdfast/contracts/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";

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
  expiresInDays: number | null;
};

export async function insertToken(tx: Tx, token: NewToken): Promise<string> {
  const id = uuidv7();
  await tx`
    INSERT INTO api_tokens (id, org_id, name, secret_hash, role, scopes, created_by, creator_name, expires_at)
    VALUES (${id}, ${token.orgId}, ${token.name}, ${token.hash}, ${token.role}, ${token.scopes}, ${token.createdBy},
            ${token.creatorName}, now() + ${token.expiresInDays}::int * interval '1 day')`;
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

/** Revoking twice keeps the first time. */
export async function markRevoked(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE api_tokens SET revoked_at = now() WHERE id = ${id} AND revoked_at IS NULL`;
}

export async function revokeTokensOf(tx: Tx, userId: string): Promise<number> {
  const revoked = await tx`
    UPDATE api_tokens SET revoked_at = now() WHERE created_by = ${userId} AND revoked_at IS NULL RETURNING id`;
  return revoked.length;
}

/** After a member's role went down, none of their tokens may keep more than it. */
export async function lowerTokensOf(tx: Tx, userId: string, role: Role): Promise<void> {
  const above: Record<Role, Role[]> = { owner: [], admin: ["owner"], member: ["owner", "admin"] };
  await tx`UPDATE api_tokens SET role = ${role} WHERE created_by = ${userId} AND role = ANY (${above[role]})`;
}
