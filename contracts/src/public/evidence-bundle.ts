// An evidence bundle: an archive (tar.gz) of JSON files about one node, allocation, incident or correlation id, with a signed
// manifest that names each file and its digest.

import { z } from "zod";
import { Time } from "../fields.ts";

export const BUNDLE_KIND = "evidence_bundle";
export const BUNDLE_VERSION = 1;
export const MANIFEST = "manifest.json";

export const evidenceSubjects = ["node", "allocation", "incident", "correlation"] as const;
export type EvidenceSubject = (typeof evidenceSubjects)[number];

/** Its `kid` is the SHA-256 of the key itself (RFC 7638), so that whoever knows the kid can recognise the key. */
export const EvidenceKey = z.strictObject({
  kid: z.string().regex(/^[A-Za-z0-9_-]{43}$/, "a SHA-256, base64url"),
  kty: z.literal("OKP"),
  crv: z.literal("Ed25519"),
  x: z.string().regex(/^[A-Za-z0-9_-]{43}$/, "an Ed25519 key, base64url"),
});
export type EvidenceKey = z.infer<typeof EvidenceKey>;

export const ManifestContent = z.strictObject({
  bundle_id: z.string(),
  installation_id: z.string(),
  org_id: z.string(),
  subject: z.strictObject({ type: z.enum(evidenceSubjects), id: z.string(), name: z.string().nullable() }),
  created_at: Time,
  created_by: z.string(),
  correlation_id: z.string(),
  holdfast_version: z.string(),
  files: z.array(
    z.strictObject({ path: z.string(), bytes: z.int().nonnegative(), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
});
export type ManifestContent = z.infer<typeof ManifestContent>;

export const Manifest = z.strictObject({
  kind: z.literal(BUNDLE_KIND),
  version: z.literal(BUNDLE_VERSION),
  content: ManifestContent,
  signatures: z.array(z.string()).min(1),
  /** Of the signature. It is trusted only if its kid is. */
  key: EvidenceKey,
});
export type Manifest = z.infer<typeof Manifest>;
