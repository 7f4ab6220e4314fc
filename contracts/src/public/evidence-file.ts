// Evidence as a file: what was known of a node at a time. It can be classified again by any later version.

import { z } from "zod";
import { ReasonText as Code, Time } from "../fields.ts";

export const EVIDENCE_FORMAT = "holdfast-evidence/1";

export const FileObservation = z.strictObject({
  id: z.string().min(1).max(64),
  kind: Code,
  key: z.string().max(64).optional().describe("Tells several of one kind apart."),
  value: z.string().regex(/^[a-z0-9_-]{1,64}$/, "a code, an id or a digest"),
  observer: Code,
  observed_at: Time,
  first_observed_at: Time.optional().describe("Of one that was repeated unchanged."),
  received_at: Time,
  detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
});
export type FileObservation = z.infer<typeof FileObservation>;

export const EvidenceFile = z.strictObject({
  format: z.literal(EVIDENCE_FORMAT),
  at: Time.describe("When the evidence was judged."),
  observations: z.array(FileObservation).max(10_000),
});
export type EvidenceFile = z.infer<typeof EvidenceFile>;
