// API tokens: of one organization, with a role and optionally fewer scopes, shown once.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { DisplayName, Id, Time } from "../fields.ts";
import { IssuedToken } from "../public/issued-tokens.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { Role, Scope } from "../public/permissions.ts";

export const ApiToken = z.strictObject({
  id: Id,
  name: z.string(),
  role: Role,
  scopes: z.array(Scope).nullable().describe("Null: all scopes of the role."),
  created_by: z.string().describe("Email of the member, or `local operator`."),
  created_at: Time,
  expires_at: Time.nullable(),
  last_used_at: Time.nullable().describe("To the minute."),
  revoked_at: Time.nullable(),
});
export type ApiToken = z.infer<typeof ApiToken>;

export const listTokens = endpoint({
  name: "listTokens",
  noun: "tokens",
  method: "GET",
  path: "/v1/tokens",
  summary: "List API tokens",
  description: "Members see their own; admins and owners see the organization's.",
  access: { scope: "tokens:read" },
  query: PageQuery,
  answer: pageOf(ApiToken),
});

export const createToken = endpoint({
  name: "createToken",
  noun: "tokens",
  method: "POST",
  path: "/v1/tokens",
  summary: "Create an API token",
  description: "`token` in the response is the secret. Only its hash is stored; it cannot be shown again.",
  access: { scope: "tokens:write" },
  action: "token.create",
  creates: true,
  body: z.strictObject({
    name: DisplayName,
    role: Role.default("member"),
    scopes: z.array(Scope).min(1).max(100).optional().describe("Restricts the role; default: all its scopes."),
    expires_in_days: z.number().int().min(1).max(3650).optional().describe("Default: valid until revoked."),
  }),
  answer: ApiToken.extend({ token: z.string() }),
});

export const revokeToken = endpoint({
  name: "revokeToken",
  noun: "tokens",
  method: "DELETE",
  path: "/v1/tokens/{token_id}",
  summary: "Revoke an API token immediately",
  description:
    "Everything that was created with it ends too: API tokens, pairing and bootstrap tokens, invitations.",
  access: { scope: "tokens:write" },
  action: "token.revoke",
  params: z.strictObject({ token_id: Id }),
  answer: z.strictObject({ ended: z.array(IssuedToken).describe("The token, and what was created with it.") }),
});
