// Evidence bundles: everything about a node, an allocation, an incident or a correlation id in one signed archive.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { EvidenceKey, evidenceSubjects } from "../public/evidence-bundle.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { LogReplica } from "./logs.ts";

export const EvidenceBundle = z.strictObject({
  id: Id,
  subject: z.strictObject({ type: z.enum(evidenceSubjects), id: z.string(), name: z.string().nullable() }),
  file_name: z.string(),
  bytes: z.int(),
  files: z.int().describe("In the archive, without its manifest."),
  sha256: z.string().describe("Of the whole archive."),
  created_by: z.string(),
  created_at: Time,
  expires_at: Time.describe("When it is removed. Download it before."),
});
export type EvidenceBundle = z.infer<typeof EvidenceBundle>;

export const createEvidence = endpoint({
  name: "createEvidence",
  noun: "evidence",
  method: "POST",
  path: "/v1/evidence",
  summary: "Create an evidence bundle",
  description:
    "The archive (tar.gz) contains the timeline, classifications with their evidence, tasks, terminals with their readiness chain, the agent's diagnostics, " +
    "audit events, log excerpts, versions, and settings without secrets, as far as the caller may see them. Secrets are redacted. " +
    "A manifest, signed with a key of the installation, names each file and its SHA-256.",
  access: { scope: "nodes:diagnose" },
  action: "evidence.create",
  creates: true,
  body: z.strictObject({
    subject_id: Text.min(8)
      .max(64)
      .describe("The id of a node, an allocation or an incident, or a correlation id."),
  }),
  answer: EvidenceBundle.extend({
    replicas: z.array(LogReplica).describe("The processes that were asked for log lines."),
  }),
});

export const listEvidence = endpoint({
  name: "listEvidence",
  noun: "evidence",
  method: "GET",
  path: "/v1/evidence",
  summary: "List evidence bundles, newest first",
  access: { scope: "nodes:diagnose" },
  query: PageQuery.extend({ subject_id: Text.max(64).optional() }),
  answer: pageOf(EvidenceBundle),
});

export const downloadEvidence = endpoint({
  name: "downloadEvidence",
  noun: "evidence",
  method: "POST",
  path: "/v1/evidence/{evidence_id}/download",
  summary: "Download an evidence bundle",
  description: "A POST, because every download is in the audit.",
  access: { scope: "nodes:diagnose" },
  action: "evidence.download",
  params: z.strictObject({ evidence_id: Id }),
  answer: EvidenceBundle.extend({ content: z.base64().describe("The archive, in base64.") }),
});

export const listEvidenceKeys = endpoint({
  name: "listEvidenceKeys",
  noun: "evidence",
  method: "GET",
  path: "/v1/evidence-keys",
  summary: "Read the public keys that verify evidence bundles",
  description:
    "Keep them, or their kid, to verify bundles offline: `holdfast evidence verify <file> --key <kid>`.",
  access: "public",
  answer: z.strictObject({ keys: z.array(EvidenceKey) }),
});
