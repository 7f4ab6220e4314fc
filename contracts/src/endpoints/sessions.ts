// Where a person is signed in, and how that ends. For the person, by a browser session or an API token of theirs that
// is not narrowed to scopes.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { IssuedToken } from "../public/issued-tokens.ts";

export const Session = z.strictObject({
  id: Id,
  created_at: Time.describe("When the person signed in."),
  last_seen_at: Time.describe("To the minute."),
  expires_at: Time,
  address: z.string().nullable().describe("Where the sign-in came from."),
  last_address: z.string().nullable().describe("Where the latest request came from."),
  user_agent: z.string().nullable().describe("As the browser named itself at sign-in."),
  terminals: z.int().min(0).describe("Open terminals that close with it."),
  current: z.boolean().describe("The session of this request."),
});
export type Session = z.infer<typeof Session>;

export const SignedOut = z.strictObject({
  sessions: z.int().min(0),
  terminals: z.int().min(0).describe("They close within seconds."),
  tokens: z.array(IssuedToken).describe("Revoked with it; empty without `revoke_tokens`."),
});
export type SignedOut = z.infer<typeof SignedOut>;

export const RevokeTokens = z
  .boolean()
  .default(false)
  .describe(
    "Also revoke every token the person created, in all organizations: API tokens, pairing and bootstrap tokens, invitations, operators' one-time links.",
  );

export const listSessions = endpoint({
  name: "listSessions",
  noun: "sessions",
  method: "GET",
  path: "/v1/me/sessions",
  summary: "List my sessions",
  access: "signed-in",
  answer: z.strictObject({ items: z.array(Session) }),
  errors: ["forbidden"],
});

export const listMyTokens = endpoint({
  name: "listMyTokens",
  noun: "sessions",
  method: "GET",
  path: "/v1/me/tokens",
  summary: "List the tokens I created, in all organizations",
  description: "API tokens, pairing and bootstrap tokens and invitations that can still be used.",
  access: "signed-in",
  answer: z.strictObject({ items: z.array(IssuedToken) }),
  errors: ["forbidden"],
});

export const endSession = endpoint({
  name: "endSession",
  noun: "sessions",
  method: "DELETE",
  path: "/v1/me/sessions/{session_id}",
  summary: "End one of my sessions",
  description: "Terminals that it opened close within seconds.",
  access: "signed-in",
  action: "session.revoke",
  params: z.strictObject({ session_id: Id }),
  errors: ["forbidden", "not_found"],
});

export const signOutEverywhere = endpoint({
  name: "signOutEverywhere",
  noun: "sessions",
  method: "POST",
  path: "/v1/me/sign-out-everywhere",
  summary: "Sign me out everywhere",
  description:
    "Ends all my sessions, including this one, and closes all my terminals, also those opened with an API token.",
  access: "signed-in",
  action: "session.end_all",
  body: z.strictObject({ revoke_tokens: RevokeTokens }),
  answer: SignedOut,
  errors: ["forbidden"],
});
