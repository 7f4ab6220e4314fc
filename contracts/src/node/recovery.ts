// The token by which a node gets a new identity without an operator. It is refreshed over the authenticated link, so it
// outlives the certificate that it replaces.

import { z } from "zod";
import { Time } from "../fields.ts";

/** Counts up over all tokens of a node. */
const Sequence = z.int().positive();

/** A secret of the node: never logged, and sent only to a server that has proved who it is. */
export const RecoveryToken = z.strictObject({
  token: z.string(),
  seq: Sequence,
  /** The name of the environment profile that it works for. */
  profile: z.string(),
  issued_at: Time,
  expires_at: Time,
});
export type RecoveryToken = z.infer<typeof RecoveryToken>;

/** The newest token that the node has, in its heartbeat; null: none. */
export const HeldRecoveryToken = z.strictObject({ seq: Sequence, expires_at: Time });
export type HeldRecoveryToken = z.infer<typeof HeldRecoveryToken>;

/** Why the node cannot go on with the identity that it has. */
export const recoveryCauses = [
  /** Its certificate has expired. */
  "cert_expired",
  /** The server does not accept its certificate. */
  "identity_rejected",
  /** It cannot verify the server at the ordinary address any more. */
  "server_untrusted",
  /** Its key or certificate is missing or damaged. */
  "identity_lost",
] as const;
export type RecoveryCause = (typeof recoveryCauses)[number];

/** Of a request: the node's own, or an operator applied a recovery bundle on the host. */
export const requestCauses = [...recoveryCauses, "operator_bundle"] as const;
export type RequestCause = (typeof requestCauses)[number];
