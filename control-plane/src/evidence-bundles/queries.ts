// Evidence bundles as rows.

import type { EvidenceSubject } from "@holdfast/contracts/public/evidence-bundle";
import type { Sql, Tx } from "../database/connect.ts";
import type { Built } from "./build.ts";
import type { Subject } from "./subject.ts";

export type BundleRow = {
  id: string;
  subject_type: EvidenceSubject;
  subject_id: string;
  subject_name: string | null;
  creator_name: string;
  created_at: Date;
  expires_at: Date;
  sha256: string;
  files: number;
  bytes: number;
};

/** Long enough to hand it over, short enough not to be an archive of its own. */
const KEPT = "7 days";

const columns = (tx: Tx) => tx`
  id, subject_type, subject_id, subject_name, creator_name, created_at, expires_at, sha256, files, length(content) AS bytes`;

export async function selectBundles(
  tx: Tx,
  { before, limit, subjectId }: { before: string; limit: number; subjectId: string | undefined },
): Promise<BundleRow[]> {
  return tx<BundleRow[]>`
    SELECT ${columns(tx)} FROM evidence_bundles
    WHERE id < ${before} AND expires_at > now() AND (${subjectId ?? null}::text IS NULL OR subject_id = ${subjectId ?? null})
    ORDER BY id DESC LIMIT ${limit + 1}`;
}

export async function selectBundle(tx: Tx, id: string): Promise<(BundleRow & { content: Buffer }) | undefined> {
  const [row] = await tx<(BundleRow & { content: Buffer })[]>`
    SELECT ${columns(tx)}, content FROM evidence_bundles WHERE id = ${id} AND expires_at > now()`;
  return row;
}

type NewBundle = Built & {
  id: string;
  orgId: string;
  subject: Subject;
  creatorName: string;
  correlationId: string;
};

export async function insertBundle(tx: Tx, bundle: NewBundle): Promise<BundleRow> {
  const { id, orgId, subject, creatorName, correlationId, archive, sha256, files } = bundle;
  const [row] = await tx<BundleRow[]>`
    INSERT INTO evidence_bundles (id, org_id, subject_type, subject_id, subject_name, creator_name, correlation_id, expires_at,
                                  sha256, files, content)
    VALUES (${id}, ${orgId}, ${subject.type}, ${subject.id}, ${subject.name}, ${creatorName}, ${correlationId},
      now() + ${KEPT}::interval, ${sha256}, ${files}, ${archive})
    RETURNING ${columns(tx)}`;
  if (!row) throw new Error("a bundle is missing in its own transaction");
  return row;
}

export async function removeOldBundles(system: Sql): Promise<number> {
  const removed = await system`DELETE FROM evidence_bundles WHERE expires_at <= now() RETURNING id`;
  return removed.length;
}
