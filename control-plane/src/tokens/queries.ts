// SQL of API tokens. Runs confined to one organization.

import type { ApiToken } from "@holdfast/contracts/endpoints/tokens";
import { ApiError } from "@holdfast/contracts/errors";
import type { Role, Scope } from "@holdfast/contracts/public/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";
import { type Actor, nameOf, userIdOf } from "../people/actor.ts";

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

export type NewToken = Maker & {
  orgId: string;
  name: string;
  hash: Buffer;
  role: Role;
  scopes: Scope[] | null;
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

/** Locks a token while another is created with it. Undefined when it was revoked meanwhile. */
async function holdToken(tx: Tx, id: string): Promise<TokenRow | undefined> {
  const [held] = await tx`SELECT FROM api_tokens WHERE id = ${id} AND revoked_at IS NULL FOR SHARE`;
  return held && selectToken(tx, id);
}

/** A new token of any kind is revoked together with these. */
export type Maker = {
  /** The person; null is the local operator. */
  createdBy: string | null;
  creatorName: string;
  /** The API token that it is created with. */
  parentId: string | null;
};

/**
 * What is created with a token belongs to the same person and is revoked with it: otherwise revoking a leaked token
 * would not end the leak.
 */
export async function makerOf(tx: Tx, actor: Actor): Promise<Maker> {
  if (actor.type !== "token") return { createdBy: userIdOf(actor), creatorName: nameOf(actor), parentId: null };
  const parent = await holdToken(tx, actor.id);
  if (!parent) throw new ApiError("unauthenticated");
  return { createdBy: parent.created_by, creatorName: parent.creator_name, parentId: parent.id };
}
