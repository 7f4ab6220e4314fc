// Nobody gives, changes or takes away more than they hold themselves.

import { ApiError } from "@holdfast/contracts/errors";
import { type ActingRole, mayGrant, type Role, scopesOfRole } from "@holdfast/contracts/permissions";
import type { Actor } from "../people/actor.ts";
import type { ActingOrg } from "./access.ts";

/** Throws when the caller could not hand out this role. */
export function requireRank({ actor, org }: { actor: Actor; org: ActingOrg }, role: Role): void {
  if (!mayGrant(org.role, role)) throw rankTooLow(org.role, role);
  // A person with the role would hold all its scopes; a token that was narrowed does not.
  if (actor.type !== "token" || actor.scopes === null) return;
  const own = new Set(actor.scopes);
  const beyond = [...scopesOfRole[role]].filter((scope) => !own.has(scope));
  if (beyond.length > 0) {
    throw new ApiError("forbidden", {
      message: `This token is narrowed: it cannot give, change or take away the role ${role}.`,
      details: { needed: beyond.join(", ") },
    });
  }
}

export function rankTooLow(own: ActingRole, role: Role): ApiError {
  return new ApiError("forbidden", {
    message: `With the role ${own} you cannot give, change or take away the role ${role}.`,
    details: { role: own, asked: role },
  });
}
