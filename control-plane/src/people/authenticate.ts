// From a bearer secret to an actor. One query each; nothing is cached, so a revoked token or an
// ended session is refused from the next request on.

import { timingSafeEqual } from "node:crypto";
import type { Role, Scope } from "@holdfast/contracts/public/permissions";
import type { Queryable, Sql } from "../database/connect.ts";
import { hashSecret, isSecretOf } from "../mechanisms/secrets.ts";
import { isBacked } from "../tokens/standing.ts";
import type { Actor, Membership } from "./actor.ts";
import { isLive } from "./sessions.ts";

/** "Last used" is kept to the minute: writing it on every request would double the load. */
const TOUCH_AFTER_MS = 60_000;

export type Authenticator = {
  fromBearer(secret: string): Promise<Actor | undefined>;
  /** `address`: the client's address, which is listed with the session. */
  fromSession(secret: string, address?: string): Promise<Actor | undefined>;
};

type SessionRow = {
  session_id: string;
  last_seen_at: Date;
  last_address: string | null;
  id: string;
  email: string;
  name: string;
  operator: boolean;
  organizations: Membership[];
};

type TokenRow = {
  id: string;
  name: string;
  role: Role;
  scopes: Scope[] | null;
  last_used_at: Date | null;
  org_id: string;
  org_slug: string;
  org_name: string;
  created_by: string | null;
  creator_name: string;
};

/** The actor of a token that is accepted. */
export async function findToken(system: Queryable, secretHash: Buffer): Promise<TokenRow | undefined> {
  const [row] = await system<TokenRow[]>`
    SELECT t.id, t.name, t.role, t.scopes, t.last_used_at, o.id AS org_id, o.slug AS org_slug, o.name AS org_name,
           t.created_by, t.creator_name
    FROM api_tokens t JOIN organizations o ON o.id = t.org_id
    WHERE t.secret_hash = ${secretHash}
      AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
      AND ${isBacked(system, "api_token")}`;
  return row;
}

export function createAuthenticator(
  system: Sql,
  options: { operatorTokenSha256: string | undefined; onTouchFailed: (error: unknown) => void },
): Authenticator {
  const operatorHash = options.operatorTokenSha256 ? Buffer.from(options.operatorTokenSha256, "hex") : undefined;

  return {
    async fromBearer(secret) {
      if (isSecretOf("localOperator", secret)) {
        const right = operatorHash !== undefined && timingSafeEqual(hashSecret(secret), operatorHash);
        return right ? { type: "local_operator" } : undefined;
      }
      if (!isSecretOf("apiToken", secret)) return undefined;
      const row = await findToken(system, hashSecret(secret));
      if (!row) return undefined;
      if (isStale(row.last_used_at)) {
        system`UPDATE api_tokens SET last_used_at = now() WHERE id = ${row.id}`.catch(options.onTouchFailed);
      }
      const { role } = row;
      const organization = { id: row.org_id, slug: row.org_slug, name: row.org_name, role };
      const person = row.created_by === null ? null : { id: row.created_by, name: row.creator_name };
      return { type: "token", id: row.id, name: row.name, role, scopes: row.scopes, organization, person };
    },

    async fromSession(secret, address) {
      if (!isSecretOf("session", secret)) return undefined;
      const [row] = await system<SessionRow[]>`
        SELECT s.id AS session_id, s.last_seen_at, s.last_address, u.id, u.email, u.name, u.operator,
          (SELECT coalesce(json_agg(json_build_object('id', o.id, 'slug', o.slug, 'name', o.name, 'role', m.role)
                                    ORDER BY o.name), '[]')
           FROM memberships m JOIN organizations o ON o.id = m.org_id WHERE m.user_id = u.id) AS organizations
        FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.secret_hash = ${hashSecret(secret)} AND ${isLive(system)}`;
      if (!row) return undefined;
      const { session_id, last_seen_at, last_address, ...user } = row;
      if (isStale(last_seen_at) || (address !== undefined && address !== last_address)) {
        system`
          UPDATE sessions SET last_seen_at = now(), last_address = ${address ?? last_address}
          WHERE id = ${session_id}`.catch(options.onTouchFailed);
      }
      return { type: "user", sessionId: session_id, ...user };
    },
  };
}

function isStale(at: Date | null): boolean {
  return at === null || Date.now() - at.getTime() > TOUCH_AFTER_MS;
}
