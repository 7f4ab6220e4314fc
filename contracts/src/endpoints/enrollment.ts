// How a machine becomes a node: an operator makes a token, the agent exchanges it for an identity.
// The two public endpoints are also served on the node-facing listener, which is where agents on
// other machines find them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, DisplayName, Id, Time } from "../fields.ts";
import { HostFacts, IssuedCertificate } from "../node/protocol.ts";
import { EnvironmentProfile, SignedEnrollment, VerifierKeys } from "../node/trust.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const NodeName = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/, "a host name: letters, digits, hyphens and dots")
  .describe("A name for the node, as a host name.");

export const EnrollmentTokenKind = z
  .enum(["pairing", "bootstrap"])
  .describe("A pairing token works once. A bootstrap token belongs to one node and is reusable.");
export type EnrollmentTokenKind = z.infer<typeof EnrollmentTokenKind>;

/** How long tokens work, in minutes: when nobody says, and at most. */
export const tokenMinutes = {
  pairing: { usual: 15, most: 24 * 60 },
  bootstrap: { usual: 30 * 24 * 60, most: 365 * 24 * 60 },
} as const satisfies Record<EnrollmentTokenKind, { usual: number; most: number }>;

export const EnrollmentToken = z.strictObject({
  id: Id,
  kind: EnrollmentTokenKind,
  /** Set when only this node may use it: it re-keys the node. A first use may set it, of a bootstrap token. */
  node_id: Id.nullable(),
  node_name: z.string().nullable().describe("The name of its node; null: decided by the machine."),
  created_by: z.string(),
  created_at: Time,
  expires_at: Time,
  used_at: Time.nullable().describe("For a bootstrap token: the last use."),
  uses: z.int().min(0),
  revoked_at: Time.nullable(),
  /** The node that came of it. */
  enrolled_node_id: Id.nullable(),
});
export type EnrollmentToken = z.infer<typeof EnrollmentToken>;

/** With the secret, which is shown once. */
export const NewEnrollmentToken = EnrollmentToken.extend({
  token: z.string().describe("Shown once. The part after the dot is the SHA-256 of the root CA."),
  api_url: z.string().describe("The URL at which the agent enrolls."),
  join_command: z.string().describe("For a machine that has a checkout of Holdfast."),
  install_command: z
    .string()
    .nullable()
    .describe(
      "Command for the new machine: downloads the agent, verifies its SHA-256, installs it, enrolls the machine and " +
        "starts it. Null while this server has no agent packed.",
    ),
  /** Other machines cannot reach the address: the listener is on loopback. */
  only_this_machine: z.boolean(),
});
export type NewEnrollmentToken = z.infer<typeof NewEnrollmentToken>;

export const createEnrollmentToken = endpoint({
  name: "createEnrollmentToken",
  noun: "nodes",
  method: "POST",
  path: "/v1/enrollment-tokens",
  summary: "Create a token that enrolls one node",
  description:
    "A pairing token works once; with `node_id` it gives that node a new key instead of creating a node. " +
    "A bootstrap token is only for the node of `node_id` or `node_name`: its first use creates the node if it does not " +
    "exist, and every use gives it a new identity and ends the previous one.",
  access: { scope: "nodes:write" },
  action: "node.token_create",
  creates: true,
  body: z
    .strictObject({
      kind: EnrollmentTokenKind.default("pairing"),
      node_id: Id.optional(),
      node_name: NodeName.optional().describe(
        "Pairing: name of the new node; default: its host name. Bootstrap: the node, which need not exist yet.",
      ),
      expires_in_minutes: z
        .int()
        .min(1)
        .max(tokenMinutes.bootstrap.most)
        .optional()
        .describe(
          "Pairing: default 15, at most 1440. Bootstrap: default 43200 (30 days), at most 525600 (a year).",
        ),
    })
    .superRefine(({ kind, node_id, node_name, expires_in_minutes = 0 }, context) => {
      const problem = (field: string, message: string) =>
        context.addIssue({ code: "custom", path: [field], message });
      if (node_id !== undefined && node_name !== undefined) {
        problem("node_name", "a node keeps its name; omit node_name with node_id");
      }
      if (kind === "bootstrap" && node_id === undefined && node_name === undefined) {
        problem("node_name", "a bootstrap token belongs to one node: node_name or node_id is required");
      }
      const { most } = tokenMinutes.pairing;
      if (kind === "pairing" && expires_in_minutes > most) {
        problem("expires_in_minutes", `at most ${most} for a pairing token`);
      }
    }),
  answer: NewEnrollmentToken,
  errors: ["ca_unavailable", "node_change_refused", "node_retired"],
});

export const listEnrollmentTokens = endpoint({
  name: "listEnrollmentTokens",
  noun: "nodes",
  method: "GET",
  path: "/v1/enrollment-tokens",
  summary: "List enrollment tokens",
  access: { scope: "nodes:write" },
  query: PageQuery,
  answer: pageOf(EnrollmentToken),
});

export const revokeEnrollmentToken = endpoint({
  name: "revokeEnrollmentToken",
  noun: "nodes",
  method: "DELETE",
  path: "/v1/enrollment-tokens/{token_id}",
  summary: "Revoke an enrollment token",
  description: "A node that is enrolled with it keeps its identity; a used pairing token does not change.",
  access: { scope: "nodes:write" },
  action: "node.token_revoke",
  params: z.strictObject({ token_id: Id }),
});

export const getTrustBundle = endpoint({
  name: "getTrustBundle",
  noun: "nodes",
  method: "GET",
  path: "/v1/trust-bundle",
  summary: "Read the root certificates that agents trust",
  description: "An agent compares them with the SHA-256 in its token before it trusts anything else.",
  access: "public",
  answer: z.strictObject({ roots: z.array(z.string()).describe("PEM, one certificate each.") }),
  errors: ["ca_unavailable"],
});

export const enrollNode = endpoint({
  name: "enrollNode",
  noun: "nodes",
  method: "POST",
  path: "/v1/enroll",
  summary: "Exchange an enrollment token for a node identity",
  description:
    "Repeated with the same token and the same key, it returns the same response and creates no second node. " +
    "A bootstrap token accepts another key too: the node gets a new identity, and the previous one is no longer accepted.",
  access: "public",
  action: "node.enroll",
  body: z.strictObject({
    token: AnyText.max(200),
    csr: AnyText.max(4096).describe("PKCS#10, PEM."),
    /** What the machine already is, when it has been a node before. */
    node_id: Id.optional(),
    node_name: DisplayName.optional().describe(
      "Pairing: the preferred name. Bootstrap: the machine's own name; if it differs from the token's node, the request is rejected.",
    ),
    facts: HostFacts,
  }),
  answer: IssuedCertificate.extend({
    node_id: Id,
    org_id: Id,
    node_name: z.string(),
    trust: SignedEnrollment,
    trust_bundle: z
      .array(z.string())
      .describe("Unsigned, for older agents, like the next two fields. Other agents use `trust`."),
    verifiers: VerifierKeys,
    profile: EnvironmentProfile,
  }),
  errors: [
    "host_unknown",
    "host_values_invalid",
    "enrollment_token_unknown",
    "enrollment_token_revoked",
    "enrollment_token_used",
    "enrollment_token_expired",
    "enrollment_token_wrong_node",
    "identity_revoked",
    "node_retired",
    "name_taken",
    "csr_invalid",
    "ca_unavailable",
    "ca_ingress_mismatch",
    "rate_limit_exceeded",
  ],
});
