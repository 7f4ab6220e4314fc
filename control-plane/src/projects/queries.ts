// SQL of projects. Runs confined to one organization.

import type { Project } from "@holdfast/contracts/endpoints/projects";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../database/connect.ts";

export type ProjectRow = { id: string; slug: string; name: string; created_at: Date };

export function toProject(row: ProjectRow): Project {
  return { id: row.id, slug: row.slug, name: row.name, created_at: row.created_at.toISOString() };
}

export async function insertProject(
  tx: Tx,
  orgId: string,
  project: { slug: string; name: string },
): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow[]>`
    INSERT INTO projects (id, org_id, slug, name) VALUES (${uuidv7()}, ${orgId}, ${project.slug}, ${project.name})
    ON CONFLICT (org_id, slug) DO NOTHING
    RETURNING id, slug, name, created_at`;
  return row;
}

export async function selectProjects(
  tx: Tx,
  filter: { search?: string | undefined },
  page: { before: string; limit: number },
): Promise<ProjectRow[]> {
  const search = filter.search?.toLowerCase() ?? null;
  return tx<ProjectRow[]>`
    SELECT id, slug, name, created_at FROM projects
    WHERE id < ${page.before}
      AND (${search}::text IS NULL OR strpos(lower(name), ${search}) > 0 OR strpos(slug, ${search}) > 0
           OR id::text = ${search})
    ORDER BY id DESC LIMIT ${page.limit + 1}`;
}

export async function selectProject(tx: Tx, id: string): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow[]>`SELECT id, slug, name, created_at FROM projects WHERE id = ${id}`;
  return row;
}

export async function renameProject(tx: Tx, id: string, name: string): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow[]>`
    UPDATE projects SET name = ${name} WHERE id = ${id} RETURNING id, slug, name, created_at`;
  return row;
}

export async function removeProject(tx: Tx, id: string): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow[]>`
    DELETE FROM projects WHERE id = ${id} RETURNING id, slug, name, created_at`;
  return row;
}
