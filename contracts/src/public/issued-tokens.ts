// Tokens of all kinds that a person has issued and that can still be used. They end with the person, or with the API
// token they were made with.

import { z } from "zod";
import { Id, Time } from "../fields.ts";

const issuedTokenKinds = [
  "api_token",
  "pairing_token",
  "bootstrap_token",
  "agent_pairing_token",
  "invitation",
  "admin_link",
] as const;
export const IssuedTokenKind = z.enum(issuedTokenKinds);
export type IssuedTokenKind = z.infer<typeof IssuedTokenKind>;

export const IssuedToken = z.strictObject({
  id: Id,
  kind: IssuedTokenKind,
  name: z
    .string()
    .nullable()
    .describe(
      "Of the API token; of the node of an enrollment token; the email of an invitation or of an operator's link.",
    ),
  node_id: Id.nullable().describe("The node that an enrollment token is bound to."),
  expires_at: Time.nullable(),
});
export type IssuedToken = z.infer<typeof IssuedToken>;

const nouns: Record<IssuedTokenKind, string> = {
  api_token: "API token",
  pairing_token: "pairing token",
  bootstrap_token: "bootstrap token",
  agent_pairing_token: "pairing token of an agent",
  invitation: "invitation",
  admin_link: "one-time link",
};

/** "2 API tokens and 1 invitation"; empty when there is none. */
export function countIssued(tokens: readonly Pick<IssuedToken, "kind">[]): string {
  const counted = issuedTokenKinds.flatMap((kind) => {
    const count = tokens.filter((token) => token.kind === kind).length;
    return count === 0 ? [] : [`${count} ${nouns[kind]}${count === 1 ? "" : "s"}`];
  });
  const last = counted.pop() ?? "";
  return counted.length === 0 ? last : `${counted.join(", ")} and ${last}`;
}

/** Nodes that can rejoin by themselves only with one of these tokens. */
export function nodesRejoiningWith(tokens: readonly IssuedToken[]): string[] {
  const names = tokens.flatMap(({ kind, name }) => (kind === "bootstrap_token" && name !== null ? [name] : []));
  return [...new Set(names)].sort();
}
