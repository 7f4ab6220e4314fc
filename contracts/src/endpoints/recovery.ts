// How a node that lost its identity gets another one by itself. Served on both listeners, like enrollment; an agent uses
// the recovery address that it was given when it joined.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Text, Time } from "../fields.ts";
import { IssuedCertificate } from "../node/protocol.ts";
import { RecoveryToken, requestCauses } from "../node/recovery.ts";
import { SignedEnrollment, SignedServerTime } from "../node/trust.ts";

const Nonce = Text.regex(/^[A-Za-z0-9_-]{22,64}$/, "16 to 48 random bytes, base64url");

/** Needs no trusted TLS: the statement is signed by the root, for this nonce. Nothing secret is sent or returned. */
export const getServerTime = endpoint({
  name: "getServerTime",
  noun: "nodes",
  method: "GET",
  path: "/v1/server-time",
  summary: "Read the server's time, signed",
  description:
    "An agent whose clock is wrong cannot judge any certificate. It reads the time here first, and verifies the signature " +
    "with the root certificate that it has had since it joined.",
  access: "public",
  query: z.strictObject({
    nonce: Nonce.optional().describe("Random, at every request: an older response is not accepted."),
  }),
  answer: SignedServerTime,
  errors: ["ca_unavailable"],
});

export const recoverNode = endpoint({
  name: "recoverNode",
  noun: "nodes",
  method: "POST",
  path: "/v1/recover",
  summary: "Exchange a recovery token for a new identity of the same node",
  description:
    "For a node that has lost its identity and holds a current recovery token, or an operator's recovery bundle. Repeated with " +
    "the same token and the same key, it returns the same certificate; another key is refused. Every earlier certificate of " +
    "the node ends; with a bundle, every earlier recovery token too.",
  access: "public",
  action: "node.recover",
  body: z.strictObject({
    token: AnyText.max(200),
    csr: AnyText.max(4096).describe("PKCS#10, PEM."),
    node_id: Id,
    /** The name of its environment profile. */
    profile: Text.max(200),
    cause: z.enum(requestCauses),
    /** By the host's clock: with a wrong one nothing is issued. */
    sent_at: Time,
    instance_id: z.uuid(),
    boot_id: Text.max(64),
  }),
  answer: IssuedCertificate.extend({
    node_id: Id,
    org_id: Id,
    node_name: z.string(),
    trust: SignedEnrollment,
    /** For the next time. */
    recovery: RecoveryToken,
  }),
  errors: [
    "recovery_token_unknown",
    "recovery_token_expired",
    "recovery_token_superseded",
    "recovery_token_used",
    "recovery_token_revoked",
    "recovery_profile_mismatch",
    "recovery_disabled",
    "recovery_not_needed",
    "bundle_unknown",
    "bundle_expired",
    "bundle_used",
    "bundle_revoked",
    "node_quarantined",
    "identity_revoked",
    "node_retired",
    "host_clock_skew",
    "csr_invalid",
    "ca_unavailable",
    "ca_ingress_mismatch",
    "rate_limit_exceeded",
  ],
});

export const revokeRecoveryTokens = endpoint({
  name: "revokeRecoveryTokens",
  noun: "nodes",
  method: "DELETE",
  path: "/v1/nodes/{node_id}/recovery-tokens",
  summary: "Revoke all recovery tokens of a node",
  description:
    "A node that is connected gets a new one with its next heartbeats. One that is not needs an operator when it has lost its identity.",
  access: { scope: "nodes:write" },
  action: "node.recovery_revoke",
  params: z.strictObject({ node_id: Id }),
  answer: z.strictObject({ revoked: z.int().nonnegative() }),
});
