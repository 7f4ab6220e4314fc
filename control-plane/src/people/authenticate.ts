// From a bearer secret to an actor. One query each; nothing is cached, so a revoked token or an
// ended session is refused from the next request on.

import { timingSafeEqual } from "node:crypto";
import { lowerRole, type Role, type Scope } from "@holdfast/contracts/permissions";
import type { Sql } from "../database/connect.ts";
import type { Actor, Membership } from "./actor.ts";
import { hashSecret, isSecretOf } from "./secrets.ts";

/** Sessions end this long after the last request, and in any case at their expiry. */
export const SESSION_IDLE = "24 hours";
export const SESSION_LIFETIME_SECONDS = 14 * 24 * 3600;
/** "Last used" is kept to the minute: writing it on every request would double the load. */
const TOUCH_AFTER_MS = 60_000;

export type Authenticator = {
  fromBearer(secret: string): Promise<Actor | undefined>;
  fromSession(secret: string): Promise<Actor | undefined>;
};

type SessionRow = {
  session_id: string;
  last_seen_at: Date;
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
  maker_role: Role | null;
  maker_operator: boolean | null;
};

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
      const [row] = await system<TokenRow[]>`
        SELECT t.id, t.name, t.role, t.scopes, t.last_used_at, o.id AS org_id, o.slug AS org_slug, o.name AS org_name,
               t.created_by, t.creator_name, m.role AS maker_role, u.operator AS maker_operator
        FROM api_tokens t JOIN organizations o ON o.id = t.org_id
        LEFT JOIN users u ON u.id = t.created_by
        LEFT JOIN memberships m ON m.org_id = t.org_id AND m.user_id = t.created_by
        WHERE t.secret_hash = ${hashSecret(secret)}
          AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;
      const role = row && effectiveRole(row);
      if (!role) return undefined;
      if (isStale(row.last_used_at)) {
        system`UPDATE api_tokens SET last_used_at = now() WHERE id = ${row.id}`.catch(options.onTouchFailed);
      }
      const organization = { id: row.org_id, slug: row.org_slug, name: row.org_name, role };
      const person = row.created_by === null ? null : { id: row.created_by, name: row.creator_name };
      return { type: "token", id: row.id, name: row.name, role, scopes: row.scopes, organization, person };
    },

    async fromSession(secret) {
      if (!isSecretOf("session", secret)) return undefined;
      const [row] = await system<SessionRow[]>`
        SELECT s.id AS session_id, s.last_seen_at, u.id, u.email, u.name, u.operator,
          (SELECT coalesce(json_agg(json_build_object('id', o.id, 'slug', o.slug, 'name', o.name, 'role', m.role)
                                    ORDER BY o.name), '[]')
           FROM memberships m JOIN organizations o ON o.id = m.org_id WHERE m.user_id = u.id) AS organizations
        FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.secret_hash = ${hashSecret(secret)}
          AND s.expires_at > now() AND s.last_seen_at > now() - ${SESSION_IDLE}::interval`;
      if (!row) return undefined;
      if (isStale(row.last_seen_at)) {
        system`UPDATE sessions SET last_seen_at = now() WHERE id = ${row.session_id}`.catch(options.onTouchFailed);
      }
      const { session_id, last_seen_at: _, ...user } = row;
      return { type: "user", sessionId: session_id, ...user };
    },
  };
}

/** A token is never worth more than its maker is now; undefined when they have left. */
function effectiveRole(
  token: Pick<TokenRow, "role" | "created_by" | "maker_role" | "maker_operator">,
): Role | undefined {
  if (token.created_by === null || token.maker_operator) return token.role;
  return token.maker_role ? lowerRole(token.role, token.maker_role) : undefined;
}

function isStale(at: Date | null): boolean {
  return at === null || Date.now() - at.getTime() > TOUCH_AFTER_MS;
}
