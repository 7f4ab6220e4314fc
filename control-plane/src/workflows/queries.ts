// Statements of workflows and their versions.

import type { Workflow, WorkflowVersion } from "@holdfast/contracts/endpoints/workflows";
import type { Queryable, Tx } from "../database/connect.ts";

export type WorkflowRow = {
  id: string;
  org_id: string;
  name: string;
  source: string;
  source_valid: boolean;
  revision: number;
  published_version: number | null;
  published_revision: number | null;
  published_at: Date | null;
  creator_name: string;
  created_at: Date;
  changer_name: string;
  changed_at: Date;
};

const columns = (db: Queryable) => db`
  w.id, w.org_id, w.name, w.source, w.source_valid, w.revision, w.published_version, w.published_revision, v.published_at,
  w.creator_name, w.created_at, w.changer_name, w.changed_at`;

const tables = (db: Queryable) => db`
  workflows w LEFT JOIN workflow_versions v ON v.workflow_id = w.id AND v.version = w.published_version`;

export function toWorkflow(row: WorkflowRow): Workflow {
  return {
    ...{ id: row.id, name: row.name, revision: row.revision, draft_valid: row.source_valid },
    published_version: row.published_version,
    changed_since_published: row.published_revision !== row.revision,
    ...{ created_by: row.creator_name, created_at: row.created_at.toISOString() },
    ...{ changed_by: row.changer_name, changed_at: row.changed_at.toISOString() },
    published_at: row.published_at?.toISOString() ?? null,
  };
}

/** Until the transaction ends, nobody else creates a workflow of the organization: it has a limit, and names are unique. */
export async function lockWorkflows(tx: Tx, orgId: string): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`workflows ${orgId}`}, 0))`;
}

export async function countWorkflows(tx: Tx): Promise<number> {
  const [row] = await tx<
    { count: number }[]
  >`SELECT count(*)::int AS count FROM workflows WHERE deleted_at IS NULL`;
  return row?.count ?? 0;
}

/** With `lock`, nobody else changes it until the transaction ends. */
export async function selectWorkflow(
  tx: Queryable,
  by: { id: string } | { name: string },
  { lock = false } = {},
): Promise<WorkflowRow | undefined> {
  const [row] = await tx<WorkflowRow[]>`
    SELECT ${columns(tx)} FROM ${tables(tx)}
    WHERE w.deleted_at IS NULL AND ${"id" in by ? tx`w.id = ${by.id}` : tx`w.name = ${by.name}`}
    ${lock ? tx`FOR NO KEY UPDATE OF w` : tx``}`;
  return row;
}

export async function selectWorkflows(
  tx: Tx,
  page: { before: string; limit: number; name?: string },
): Promise<WorkflowRow[]> {
  return tx<WorkflowRow[]>`
    SELECT ${columns(tx)} FROM ${tables(tx)}
    WHERE w.deleted_at IS NULL AND w.id < ${page.before} ${page.name === undefined ? tx`` : tx`AND w.name = ${page.name}`}
    ORDER BY w.id DESC LIMIT ${page.limit + 1}`;
}

type Draft = { source: string; valid: boolean; by: string };

export async function insertWorkflow(
  tx: Tx,
  { id, orgId, name }: { id: string; orgId: string; name: string },
  draft: Draft,
): Promise<void> {
  await tx`
    INSERT INTO workflows (id, org_id, name, source, source_valid, creator_name, changer_name)
    VALUES (${id}, ${orgId}, ${name}, ${draft.source}, ${draft.valid}, ${draft.by}, ${draft.by})`;
}

export async function updateDraft(tx: Tx, id: string, draft: Draft): Promise<void> {
  await tx`
    UPDATE workflows SET source = ${draft.source}, source_valid = ${draft.valid}, revision = revision + 1,
      changer_name = ${draft.by}, changed_at = now()
    WHERE id = ${id}`;
}

export async function markDeleted(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE workflows SET deleted_at = now() WHERE id = ${id}`;
}

/** The draft becomes a version. The row is locked. */
export async function insertVersion(
  tx: Tx,
  row: WorkflowRow,
  { version, by }: { version: number; by: string },
): Promise<void> {
  await tx`
    INSERT INTO workflow_versions (workflow_id, org_id, version, source, publisher_name)
    VALUES (${row.id}, ${row.org_id}, ${version}, ${row.source}, ${by})`;
  await tx`
    UPDATE workflows SET published_version = ${version}, published_revision = revision WHERE id = ${row.id}`;
}

/** The document of a test, under the next number below zero. The row is locked. */
export async function insertTestDocument(
  tx: Tx,
  row: Pick<WorkflowRow, "id" | "org_id">,
  { source, by }: { source: string; by: string },
): Promise<number> {
  const [stored] = await tx<{ version: number }[]>`
    INSERT INTO workflow_versions (workflow_id, org_id, version, source, publisher_name)
    SELECT ${row.id}, ${row.org_id}, least(min(version), 0) - 1, ${source}, ${by} FROM workflow_versions WHERE workflow_id = ${row.id}
    RETURNING version`;
  if (!stored) throw new Error("nothing was stored");
  return stored.version;
}

type VersionRow = { version: number; source: string; publisher_name: string; published_at: Date };

export async function selectVersion(
  tx: Queryable,
  id: string,
  version: number,
): Promise<WorkflowVersion | undefined> {
  const [row] = await tx<VersionRow[]>`
    SELECT version, source, publisher_name, published_at FROM workflow_versions
    WHERE workflow_id = ${id} AND version = ${version}`;
  return row && { source: row.source, ...listed(row) };
}

export async function selectVersions(
  tx: Tx,
  id: string,
  { limit, before }: { limit: number; before: number | undefined },
): Promise<Omit<WorkflowVersion, "source">[]> {
  const rows = await tx<Omit<VersionRow, "source">[]>`
    SELECT version, publisher_name, published_at FROM workflow_versions
    WHERE workflow_id = ${id} AND version > 0 ${before === undefined ? tx`` : tx`AND version < ${before}`}
    ORDER BY version DESC LIMIT ${limit}`;
  return rows.map(listed);
}

const listed = ({ version, publisher_name, published_at }: Omit<VersionRow, "source">) => ({
  ...{ version, published_by: publisher_name, published_at: published_at.toISOString() },
});
