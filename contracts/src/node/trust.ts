// What a node takes as trust: keys that sign tasks, roots, addresses. All of it is signed by something that no proxy
// between api and node holds, and its version only rises (ADR 15). Agents import the types alone.

import { z } from "zod";
import { Id, Time } from "../fields.ts";

/** Named, versioned: where this node finds the server, and what it may probe. */
export const EnvironmentProfile = z.strictObject({
  name: z.string(),
  version: z.int().positive(),
  /** By name: `node_api`, `node_terminal`, `public`, `recovery`, and whatever else may be probed. */
  endpoints: z.record(z.string(), z.string()),
  /** Host names with addresses to use where there is no private DNS. */
  resolve: z.record(z.string(), z.array(z.string())),
  /** SHA-256 of each trusted root certificate (DER), hex. */
  ca_sha256: z.array(z.string()),
});
export type EnvironmentProfile = z.infer<typeof EnvironmentProfile>;

/** RFC 7517: Ed25519 public keys that tasks may be signed with. */
export const VerifierKeys = z.strictObject({
  keys: z.array(
    z.strictObject({
      kty: z.literal("OKP"),
      crv: z.literal("Ed25519"),
      alg: z.literal("EdDSA"),
      use: z.literal("sig"),
      kid: z.string(),
      x: z.string(),
    }),
  ),
});
export type VerifierKeys = z.infer<typeof VerifierKeys>;

const Version = z.int().positive();

export function signed<K extends string, C extends z.ZodType>(kind: K, content: C) {
  return z.strictObject({
    kind: z.literal(kind),
    version: Version,
    content,
    /** Detached JWS, each over the canonical JSON of kind, version and content. */
    signatures: z.array(z.string()),
  });
}

/** One link of the chain: signed with a key of the set before it. */
export const SignedKeySet = signed("task_key_set", VerifierKeys);
export type SignedKeySet = z.infer<typeof SignedKeySet>;

export const TrustBundle = z.strictObject({ roots: z.array(z.string()).describe("PEM, one certificate each.") });
/** Signed with the key of a root; its kid is the root's SHA-256, hex. */
export const SignedBundle = signed("trust_bundle", TrustBundle);
export type SignedBundle = z.infer<typeof SignedBundle>;

/** Signed with the key of a root; its version is the profile's own. */
export const SignedProfile = signed("environment_profile", EnvironmentProfile);
export type SignedProfile = z.infer<typeof SignedProfile>;

/**
 * What a node begins with, signed with the key of the root whose SHA-256 is in its enrollment token. Made for one
 * certificate request: it names that request's key, so an older answer cannot take its place.
 */
export const SignedEnrollment = signed(
  "enrollment",
  z.strictObject({
    node_id: Id,
    key_sha256: z.string().describe("SHA-256 of the public key (SPKI, DER) of the certificate request, hex."),
    key_set: VerifierKeys.extend({ version: Version }),
    bundle: TrustBundle.extend({ version: Version }),
    profile: EnvironmentProfile,
  }),
);
export type SignedEnrollment = z.infer<typeof SignedEnrollment>;

/** Signed with the key of a root, for a host that cannot trust its own clock. */
export const SignedServerTime = signed(
  "server_time",
  z.strictObject({ time: Time, nonce: z.string().describe("Of the request: an older response is not accepted.") }),
);
export type SignedServerTime = z.infer<typeof SignedServerTime>;

/** What the node has by version; 0 is what an agent got before these were signed. */
export const TrustVersions = z.strictObject({
  key_set: z.int().nonnegative(),
  bundle: z.int().nonnegative(),
});
export type TrustVersions = z.infer<typeof TrustVersions>;

/** Of a heartbeat's answer: what is newer than what the node has. */
export const TrustOffer = z.strictObject({
  /** In order: each is verified with the one before it. */
  key_sets: z.array(SignedKeySet).optional(),
  bundle: SignedBundle.optional(),
  profile: SignedProfile.optional(),
});
export type TrustOffer = z.infer<typeof TrustOffer>;
