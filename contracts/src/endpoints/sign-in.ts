// Getting in and out: password, one-time links, sessions. Cookies are set by the server; the
// session secret is never in a body.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Email, NewPassword, PersonName } from "../fields.ts";
import { Role } from "../public/permissions.ts";
import { secretPrefix } from "../secrets.ts";
import { Me } from "./me.ts";
import { RevokeTokens } from "./sessions.ts";

const LinkSecret = AnyText.startsWith(secretPrefix.link).max(100).describe("The part after `#` in the link.");

export const signIn = endpoint({
  name: "signIn",
  noun: "sign-in",
  method: "POST",
  path: "/v1/sign-in",
  summary: "Sign in with email and password",
  description: "Sets an HttpOnly session cookie. Repeated failures are slowed down by `rate_limit_exceeded`.",
  access: "public",
  action: "session.create",
  body: z.strictObject({ email: Email, password: AnyText.min(1).max(200) }),
  answer: Me,
  errors: ["sign_in_failed", "rate_limit_exceeded", "origin_refused"],
});

export const signOut = endpoint({
  name: "signOut",
  noun: "sign-in",
  method: "POST",
  path: "/v1/sign-out",
  summary: "End this session",
  access: "public",
  action: "session.end",
});

export const LinkPurpose = z.enum(["first_admin", "sign_in", "invitation"]);
export type LinkPurpose = z.infer<typeof LinkPurpose>;

export const inspectLink = endpoint({
  name: "inspectLink",
  noun: "sign-in",
  method: "POST",
  path: "/v1/links/inspect",
  summary: "See what a one-time link is for, without using it",
  access: "public",
  body: z.strictObject({ secret: LinkSecret }),
  answer: z.strictObject({
    purpose: LinkPurpose,
    email: z
      .string()
      .nullable()
      .describe("The account or invitation it is bound to; null for the first administrator."),
    organization: z.string().nullable().describe("The organization of an invitation."),
    role: Role.nullable(),
    expires_at: z.iso.datetime(),
  }),
  errors: ["link_unknown", "link_used", "link_expired", "rate_limit_exceeded"],
});

export const redeemLink = endpoint({
  name: "redeemLink",
  noun: "sign-in",
  method: "POST",
  path: "/v1/links/redeem",
  summary: "Use a one-time link and sign in",
  description:
    "For the first administrator `email` and `name` are required. An invitation with `name` creates a new account; " +
    "without it, `password` is that of the person's existing account. Whether there is one is not revealed: the inviter " +
    "could read it too. A link that sets a new password signs the account out everywhere else.",
  access: "public",
  action: "link.redeem",
  body: z.strictObject({
    secret: LinkSecret,
    email: Email.optional(),
    name: PersonName.optional(),
    password: NewPassword,
    revoke_tokens: RevokeTokens.describe("For a link that sets a new password, as in `changePassword`."),
  }),
  answer: Me,
  errors: [
    "sign_in_failed",
    "link_unknown",
    "link_used",
    "link_expired",
    "rate_limit_exceeded",
    "name_taken",
    "origin_refused",
  ],
});
