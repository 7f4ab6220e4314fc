// A recovery bundle: what an operator carries to a host whose node cannot come back by itself. One signed statement with
// everything that a connection to the server depends on, and a secret that works once. It never contains a private key.

import { z } from "zod";
import { Id, Text, Time } from "../fields.ts";
import { EnvironmentProfile, signed, TrustBundle, VerifierKeys } from "./trust.ts";

const Version = z.int().nonnegative();
const State = z.strictObject({
  profile: z.strictObject({ name: Text.max(200), version: Version }).nullable(),
  key_set: Version,
  trust_bundle: Version,
});

/** What a bundle changed on the host, as it was there. */
export const AppliedBundle = z.strictObject({
  id: Id,
  applied_at: Time,
  /** Null: the host had no state of this node. */
  before: State.nullable(),
  after: State,
});
export type AppliedBundle = z.infer<typeof AppliedBundle>;

const InstalledFile = z.strictObject({ path: z.string(), content: z.string() });

/** Signed with the key of a root. The version is that of this format. */
export const RecoveryBundle = signed(
  "recovery_bundle",
  z.strictObject({
    bundle_id: Id,
    /** Counts up over all bundles of the node: an older one is not applied after a newer one. */
    seq: z.int().positive(),
    node: z.strictObject({ id: Id, org_id: Id, name: z.string() }),
    issued_at: Time,
    issued_by: z.string(),
    expires_at: Time,
    correlation_id: z.string().describe("Of everything that is done with this bundle, in the audit."),
    incident_id: Id.nullable(),
    token: z.string().describe("Secret. Works once, for this node."),
    /** Where nodes reach the server; used when the profile names no address. */
    api_url: z.string(),
    profile: EnvironmentProfile,
    trust_bundle: TrustBundle.extend({ version: z.int().positive() }),
    key_set: VerifierKeys.extend({ version: z.int().positive() }),
    agent: z
      .strictObject({
        version: z.string(),
        archives: z.array(z.strictObject({ arch: z.string(), file: z.string(), sha256: z.string() })),
      })
      .nullable()
      .describe("The agent of this server; null: it has none packed."),
    files: z.strictObject({
      unit: InstalledFile,
      /** `content` is for a host without the file; otherwise the settings in `unset` are removed from it. */
      env: InstalledFile.extend({ unset: z.array(z.string()) }),
    }),
    /** Of the node, as its server knows it. */
    before: State.extend({ hostname: z.string().nullable() }),
    after: State,
  }),
);
export type RecoveryBundle = z.infer<typeof RecoveryBundle>;
