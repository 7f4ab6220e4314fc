// How a machine becomes a node: an operator makes a token, the agent exchanges it for an identity.
// The two public endpoints are also served on the node-facing listener, which is where agents on
// other machines find them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { DisplayName, Id, Time } from "../fields.ts";
import { EnvironmentProfile, HostFacts, IssuedCertificate, VerifierKeys } from "../node-protocol.ts";
import { PageQuery, pageOf } from "../pagination.ts";

export const NodeName = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/, "a host name: letters, digits, hyphens and dots")
  .describe("A name for the node, as a host name.");

export const EnrollmentToken = z.strictObject({
  id: Id,
  /** Set when only this node may use it: it re-keys the node. */
  node_id: Id.nullable(),
  created_by: z.string(),
  created_at: Time,
  expires_at: Time,
  used_at: Time.nullable(),
  revoked_at: Time.nullable(),
  /** The node that came of it. */
  enrolled_node_id: Id.nullable(),
});
export type EnrollmentToken = z.infer<typeof EnrollmentToken>;

export const createEnrollmentToken = endpoint({
  name: "createEnrollmentToken",
  noun: "nodes",
  method: "POST",
  path: "/v1/enrollment-tokens",
  summary: "Make a token that enrolls one node",
  description: "Single use. With `node_id` it re-keys that node instead of making a new one.",
  access: { scope: "nodes:write" },
  action: "node.token_create",
  creates: true,
  body: z.strictObject({
    node_id: Id.optional(),
    node_name: NodeName.optional().describe("What the new node is called; left out, its host name."),
    expires_in_minutes: z.int().min(1).max(1440).default(15),
  }),
  answer: EnrollmentToken.extend({
    token: z.string().describe("Shown once. Holds the SHA-256 of the root CA behind the dot."),
    api_url: z.string().describe("What the agent joins through."),
    join_command: z.string().describe("To be run on the machine that shall become a node."),
    /** Other machines cannot reach the address: the listener is on loopback. */
    only_this_machine: z.boolean(),
  }),
  errors: ["ca_unavailable", "node_retired"],
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
  summary: "Revoke an enrollment token that was not used yet",
  access: { scope: "nodes:write" },
  action: "node.token_revoke",
  params: z.strictObject({ token_id: Id }),
});

export const getTrustBundle = endpoint({
  name: "getTrustBundle",
  noun: "nodes",
  method: "GET",
  path: "/v1/trust-bundle",
  summary: "The root certificates that agents trust",
  description: "An agent that joins compares them with the SHA-256 in its token before it believes anything else.",
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
  description: "Repeated with the same token and the same key, it gives the same answer and makes no second node.",
  access: "public",
  action: "node.enroll",
  body: z.strictObject({
    token: z.string().max(200),
    csr: z.string().max(4096).describe("PKCS#10, PEM."),
    /** What the machine already is, when it has been a node before. */
    node_id: Id.optional(),
    node_name: DisplayName.optional(),
    facts: HostFacts,
  }),
  answer: IssuedCertificate.extend({
    node_id: Id,
    org_id: Id,
    node_name: z.string(),
    trust_bundle: z.array(z.string()),
    verifiers: VerifierKeys,
    profile: EnvironmentProfile,
  }),
  errors: [
    "enrollment_token_unknown",
    "enrollment_token_used",
    "enrollment_token_expired",
    "enrollment_token_wrong_node",
    "node_retired",
    "csr_invalid",
    "ca_unavailable",
    "rate_limit_exceeded",
  ],
});
