// Who has access to an allocation, and which: its owner, administrators, and members with a grant until that expires.
// `accessTo` decides; `reaches` is the same in SQL, for lists and for terminals that are open. A test compares them.

import type { AllocationAccess, GrantLevel } from "@holdfast/contracts/endpoints/allocations";
import { ApiError } from "@holdfast/contracts/errors";
import type { ActingRole } from "@holdfast/contracts/public/permissions";
import { HiddenError } from "../api/hidden.ts";
import type { Fragment, Queryable } from "../database/connect.ts";
import { type Actor, holdsScope, nameOf } from "../people/actor.ts";

/** Who may own an allocation: a person, or an API token without a person behind it. */
export type Owner = { owner_user_id: string | null; owner_token_id: string | null };

/** A caller as allocations see one. The local operator is neither a person nor a token, and administers. */
export type Caller = { userId: string | null; tokenId: string | null; administers: boolean };

export type Grant = { level: GrantLevel; expires_at: Date };

export function callerOf({ actor, org }: { actor: Actor; org: { role: ActingRole } }): Caller {
  const { owner_user_id: userId, owner_token_id: tokenId } = ownerOf(actor);
  return { userId, tokenId, administers: holdsScope(actor, org.role, "allocations:admin") };
}

/** The owner of what an actor creates: the person behind it, if there is one. */
export function ownerOf(actor: Actor): Owner & { owner_name: string | null } {
  switch (actor.type) {
    case "user":
      return { owner_user_id: actor.id, owner_token_id: null, owner_name: nameOf(actor) };
    case "token":
      return actor.person
        ? { owner_user_id: actor.person.id, owner_token_id: null, owner_name: actor.person.name }
        : { owner_user_id: null, owner_token_id: actor.id, owner_name: nameOf(actor) };
    case "local_operator":
      return { owner_user_id: null, owner_token_id: null, owner_name: null };
  }
}

/** `grant`: the caller's own. */
export function accessTo(
  caller: Caller,
  allocation: Owner & { grant: Grant | null },
  now: Date,
): AllocationAccess | "none" {
  const { owner_user_id, owner_token_id, grant } = allocation;
  const owns =
    (owner_user_id !== null && owner_user_id === caller.userId) ||
    (owner_token_id !== null && owner_token_id === caller.tokenId);
  if (caller.administers || owns) return "manage";
  if (grant !== null && grant.expires_at > now) return grant.level;
  return "none";
}

const rank: Record<AllocationAccess | "none", number> = { none: 0, view: 1, use: 2, manage: 3 };

/** Throws when the caller has less access than needed. Without any, the allocation is reported as not found. */
export function requireAccess(access: AllocationAccess | "none", needed: AllocationAccess): void {
  if (access === "none") throw new HiddenError();
  if (rank[access] >= rank[needed]) return;
  throw new ApiError("forbidden", {
    message: `You may ${access} this allocation, but not ${needed} it.`,
    nextStep: "Ask its owner or an administrator of the organization.",
    details: { access, needed },
  });
}

/** A caller as SQL expressions. */
export type CallerSql = Record<"userId" | "tokenId" | "administers", Fragment>;

export const callerSql = (db: Queryable, { userId, tokenId, administers }: Caller): CallerSql => ({
  userId: db`${userId}::uuid`,
  tokenId: db`${tokenId}::uuid`,
  administers: db`${administers}::boolean`,
});

const sufficientGrants = { view: ["view", "use"], use: ["use"], manage: [] } as const;

/** For an allocation `a`: whether the caller has at least this access now. NULL also means no. */
export const reaches = (db: Queryable, caller: CallerSql, needed: AllocationAccess): Fragment => db`(
  ${caller.administers} OR a.owner_user_id = ${caller.userId} OR a.owner_token_id = ${caller.tokenId}
  OR EXISTS (
    SELECT FROM allocation_grants g
    WHERE g.allocation_id = a.id AND g.grantee_id = ${caller.userId} AND g.expires_at > now()
      AND g.level = ANY (${[...sufficientGrants[needed]]}::text[])))`;
