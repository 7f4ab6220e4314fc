// One rule for everything a person issues (API tokens, enrollment tokens, pairing tokens of agents, one-time links): it is limited to what its
// creator may do now. The rule is checked in the statement that accepts a token; tokens that violate it are also revoked
// when the creator changes (issued.ts), but a token that was being created at that moment is refused only by this check.

import { mayGrant, type Role, roles, type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";
import type { Queryable } from "../database/connect.ts";

export type TokenTable = "api_token" | "enrollment_token" | "pairing_token" | "invitation";

/** What a creator must be allowed to do. With a role, they must also be able to grant that role. */
const neededScope: Record<TokenTable, Scope> = {
  api_token: "tokens:write",
  enrollment_token: "nodes:write",
  pairing_token: "agents:write",
  invitation: "members:write",
};

/** The roles whose holders may create such a token. */
function makersOf(kind: TokenTable, granted?: Role): Role[] {
  return roles.filter(
    (role) => scopesOfRole[role].has(neededScope[kind]) && (granted === undefined || mayGrant(role, granted)),
  );
}

/** For a row `t`: the roles whose holders may create it, as an array. */
export const neededRoles = (db: Queryable, kind: TokenTable) =>
  kind === "enrollment_token" || kind === "pairing_token"
    ? db`${makersOf(kind)}::text[]`
    : db`CASE t.role WHEN 'owner' THEN ${makersOf(kind, "owner")}::text[]
                     WHEN 'admin' THEN ${makersOf(kind, "admin")}::text[]
                     ELSE ${makersOf(kind, "member")}::text[] END`;

/**
 * Of a row `t` with org_id (null: only an operator creates it), created_by and parent_id. Without a creator it belongs to the local operator; the platform operator holds
 * every role everywhere. A token also needs the API token that it was created with.
 */
export const isBacked = (db: Queryable, kind: TokenTable) => db`(
  (t.created_by IS NULL OR EXISTS (
    SELECT FROM users maker LEFT JOIN memberships held ON held.user_id = maker.id AND held.org_id = t.org_id
    WHERE maker.id = t.created_by AND (maker.operator OR held.role = ANY(${neededRoles(db, kind)}))))
  AND NOT EXISTS (SELECT FROM api_tokens parent WHERE parent.id = t.parent_id AND parent.revoked_at IS NOT NULL))`;
