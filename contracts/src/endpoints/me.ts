// Who am I, and where may I act.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, NewPassword } from "../fields.ts";
import { Role, Scope } from "../public/permissions.ts";
import { RevokeTokens, SignedOut } from "./sessions.ts";

export const Me = z.strictObject({
  type: z.enum(["user", "token", "local_operator"]),
  id: Id.nullable().describe("Of the user or the token; the local operator has none."),
  name: z.string(),
  email: z.string().nullable(),
  operator: z.boolean().describe("May act for the whole platform."),
  scopes: z
    .array(Scope)
    .nullable()
    .describe("The scopes a token is restricted to; null for people, whose role decides."),
  organizations: z.array(
    z.strictObject({ id: Id, slug: z.string(), name: z.string(), role: z.union([Role, z.literal("operator")]) }),
  ),
});
export type Me = z.infer<typeof Me>;

export const getMe = endpoint({
  name: "getMe",
  noun: "me",
  method: "GET",
  path: "/v1/me",
  summary: "Who am I",
  access: "signed-in",
  answer: Me,
});

export const changePassword = endpoint({
  name: "changePassword",
  noun: "me",
  method: "POST",
  path: "/v1/me/password",
  summary: "Change my password",
  description:
    "Ends all sessions of the account and closes its terminals. The response sets a new session cookie for this browser.",
  access: "signed-in",
  action: "user.change_password",
  body: z.strictObject({
    current_password: AnyText.min(1).max(200),
    new_password: NewPassword,
    revoke_tokens: RevokeTokens,
  }),
  answer: SignedOut,
  errors: ["sign_in_failed", "rate_limit_exceeded", "forbidden"],
});
