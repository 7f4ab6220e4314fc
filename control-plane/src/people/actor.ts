// Who acts. The union is total: every request that gets past authentication is one of these.

import type { Me } from "@holdfast/contracts/endpoints/me";
import { type ActingRole, type Role, type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";

export type Membership = { id: string; slug: string; name: string; role: Role };

/** The name at the time of the record. */
export type Person = { id: string; name: string };

export type Actor =
  | {
      type: "user";
      id: string;
      name: string;
      email: string;
      operator: boolean;
      sessionId: string;
      organizations: Membership[];
    }
  | {
      type: "token";
      id: string;
      name: string;
      role: Role;
      scopes: Scope[] | null;
      organization: Membership;
      /** Who created it; null for the local operator. */
      person: Person | null;
    }
  | { type: "local_operator" };

const LOCAL_OPERATOR_NAME = "local operator";

export function nameOf(actor: Actor): string {
  switch (actor.type) {
    case "user":
      return actor.email;
    case "token":
      return actor.name;
    case "local_operator":
      return LOCAL_OPERATOR_NAME;
  }
}

/** Never changes for an actor; the scope of idempotency keys. */
export function keyOf(actor: Actor): string {
  return actor.type === "local_operator" ? actor.type : `${actor.type}:${actor.id}`;
}

export function isOperator(actor: Actor): boolean {
  return actor.type === "local_operator" || (actor.type === "user" && actor.operator);
}

/** Decided by the role, and for a token also by its scopes. */
export function holdsScope(actor: Actor, role: ActingRole, scope: Scope): boolean {
  if (!scopesOfRole[role].has(scope)) return false;
  return actor.type !== "token" || actor.scopes === null || actor.scopes.includes(scope);
}

/** The person behind the actor, who owns what it creates. */
export function userIdOf(actor: Actor): string | null {
  return actor.type === "user" ? actor.id : null;
}

export function describe(
  actor: Actor,
  organizations: { id: string; slug: string; name: string; role: ActingRole }[],
): Me {
  return {
    type: actor.type,
    id: actor.type === "local_operator" ? null : actor.id,
    name: actor.type === "user" ? actor.name : nameOf(actor),
    email: actor.type === "user" ? actor.email : null,
    operator: isOperator(actor),
    scopes: actor.type === "token" ? actor.scopes : null,
    organizations,
  };
}
