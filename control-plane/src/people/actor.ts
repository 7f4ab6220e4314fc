// Who acts. The union is total: every request that gets past authentication is one of these.

import type { Me } from "@holdfast/contracts/endpoints/me";
import { type ActingRole, type Role, type Scope, scopesOfRole } from "@holdfast/contracts/permissions";

export type Membership = { id: string; slug: string; name: string; role: Role };

/** As they were called when that was written down. */
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
      /** Who made it; null for the local operator. */
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

/** Stable over the actor's life; what idempotency keys are scoped by. */
export function keyOf(actor: Actor): string {
  return actor.type === "local_operator" ? actor.type : `${actor.type}:${actor.id}`;
}

export function isOperator(actor: Actor): boolean {
  return actor.type === "local_operator" || (actor.type === "user" && actor.operator);
}

/** By the role, and for a token by what it was narrowed to. */
export function holdsScope(actor: Actor, role: ActingRole, scope: Scope): boolean {
  if (!scopesOfRole[role].has(scope)) return false;
  return actor.type !== "token" || actor.scopes === null || actor.scopes.includes(scope);
}

/** The person behind it, for what is owned by people. */
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
