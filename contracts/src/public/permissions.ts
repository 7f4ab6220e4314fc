// Who may do what. A role is a set of scopes; a token narrows its role to the scopes it names.
// Endpoints declare the scope they need and nothing else decides.

import { z } from "zod";

export const scopes = [
  "org:read",
  "org:write",
  "projects:read",
  "projects:write",
  "members:read",
  "members:write",
  "tokens:read",
  "tokens:write",
  "audit:read",
  "nodes:read",
  "nodes:write",
  "nodes:diagnose",
  "tasks:read",
  "tasks:write",
  "allocations:read",
  "allocations:write",
  "allocations:admin",
  "terminals:use",
  "agents:read",
  "agents:write",
  "executions:read",
  "executions:write",
  "secrets:read",
  "secrets:write",
  "leases:read",
  "leases:write",
  "workflows:read",
  "workflows:write",
  "workflows:run",
] as const;
export const Scope = z.enum(scopes);
export type Scope = z.infer<typeof Scope>;

export const roles = ["owner", "admin", "member"] as const;
export const Role = z.enum(roles);
export type Role = z.infer<typeof Role>;

/** Beside an organization's roles, the platform operator acts in every organization, and is audited as such. */
export type ActingRole = Role | "operator";

const memberScopes: Scope[] = [
  ...(["org:read", "projects:read", "members:read", "tokens:read", "tokens:write"] as const),
  ...(["nodes:read", "tasks:read", "allocations:read", "allocations:write", "terminals:use"] as const),
  ...(["agents:read", "executions:read", "secrets:read", "leases:read", "workflows:read"] as const),
];
const adminScopes: Scope[] = [
  ...memberScopes,
  ...([
    "projects:write",
    "members:write",
    "audit:read",
    "nodes:write",
    // Why a node is as it is, for whoever operates it: tenants see user states instead.
    "nodes:diagnose",
    "tasks:write",
    "allocations:admin",
    ...([
      "agents:write",
      "executions:write",
      "secrets:write",
      "leases:write",
      "workflows:write",
      "workflows:run",
    ] as const),
  ] as const),
];

export const scopesOfRole: Record<ActingRole, ReadonlySet<Scope>> = {
  member: new Set(memberScopes),
  admin: new Set(adminScopes),
  owner: new Set(scopes),
  operator: new Set(scopes),
};

const rank: Record<ActingRole, number> = { member: 0, admin: 1, owner: 2, operator: 3 };

/** Nobody hands out, changes or revokes more than they hold themselves. */
export function mayGrant(actor: ActingRole, granted: Role): boolean {
  return rank[actor] >= rank[granted] && actor !== "member" ? true : actor === granted;
}
