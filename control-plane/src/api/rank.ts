// Nobody can grant, change or remove a role with more permissions than their own.

import { ApiError } from "@holdfast/contracts/errors";
import { type ActingRole, mayGrant, type Role, scopesOfRole } from "@holdfast/contracts/public/permissions";
import type { Actor } from "../people/actor.ts";
import type { ActingOrg } from "./access.ts";

/** Throws when the caller may not grant this role. */
export function requireRank({ actor, org }: { actor: Actor; org: ActingOrg }, role: Role): void {
  if (!mayGrant(org.role, role)) throw rankTooLow(org.role, role);
  // A person with the role has all its scopes; a token with limited scopes does not.
  if (actor.type !== "token" || actor.scopes === null) return;
  const own = new Set(actor.scopes);
  const beyond = [...scopesOfRole[role]].filter((scope) => !own.has(scope));
  if (beyond.length > 0) {
    throw new ApiError("forbidden", {
      message: `This token's scopes are limited: it cannot grant, change or remove the role ${role}.`,
      details: { needed: beyond.join(", ") },
    });
  }
}

export function rankTooLow(own: ActingRole, role: Role): ApiError {
  return new ApiError("forbidden", {
    message: `With the role ${own} you cannot grant, change or remove the role ${role}.`,
    details: { role: own, asked: role },
  });
}
