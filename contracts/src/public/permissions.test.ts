import { describe, expect, it } from "vitest";
import { type ActingRole, mayGrant, Role, type Scope, scopes, scopesOfRole } from "./permissions.ts";

const everyone: ActingRole[] = ["member", "admin", "owner", "operator"];

/** Who holds each scope. Written out, so that a change of the code must be a decision made twice. */
const holders: Record<Scope, ActingRole[]> = {
  "org:read": everyone,
  "org:write": ["owner", "operator"],
  "projects:read": everyone,
  "projects:write": ["admin", "owner", "operator"],
  "members:read": everyone,
  "members:write": ["admin", "owner", "operator"],
  "tokens:read": everyone,
  "tokens:write": everyone,
  "audit:read": ["admin", "owner", "operator"],
  "nodes:read": everyone,
  "nodes:write": ["admin", "owner", "operator"],
  "nodes:diagnose": ["admin", "owner", "operator"],
  "tasks:read": everyone,
  "tasks:write": ["admin", "owner", "operator"],
  "allocations:read": everyone,
  "allocations:write": everyone,
  "allocations:admin": ["admin", "owner", "operator"],
  "terminals:use": everyone,
  "agents:read": everyone,
  "agents:write": ["admin", "owner", "operator"],
  "executions:read": everyone,
  "executions:write": ["admin", "owner", "operator"],
  "secrets:read": everyone,
  "secrets:write": ["admin", "owner", "operator"],
  "leases:read": everyone,
  "leases:write": ["admin", "owner", "operator"],
  "workflows:read": everyone,
  "workflows:write": ["admin", "owner", "operator"],
  "workflows:run": ["admin", "owner", "operator"],
};

/** Which roles each may hand out. */
const grants: Record<ActingRole, Role[]> = {
  member: ["member"],
  admin: ["member", "admin"],
  owner: ["member", "admin", "owner"],
  operator: ["member", "admin", "owner"],
};

describe("permissions", () => {
  it.for(everyone.flatMap((role) => scopes.map((scope) => ({ role, scope }))))(
    "SEC-01 decides $scope for $role",
    ({ role, scope }) => {
      expect(scopesOfRole[role].has(scope)).toBe(holders[scope].includes(role));
    },
  );

  it.for(everyone.flatMap((actor) => Role.options.map((granted) => ({ actor, granted }))))(
    "SEC-01 decides whether $actor may make somebody $granted",
    ({ actor, granted }) => {
      expect(mayGrant(actor, granted)).toBe(grants[actor].includes(granted));
    },
  );

  it("SEC-01 gives nobody a scope by granting that the granter lacks", () => {
    for (const actor of everyone) {
      for (const granted of Role.options.filter((role) => mayGrant(actor, role))) {
        const beyond = [...scopesOfRole[granted]].filter((scope) => !scopesOfRole[actor].has(scope));
        expect(beyond, `${actor} grants ${granted}`).toEqual([]);
      }
    }
  });
});
