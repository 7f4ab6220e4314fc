// SQL of organizations.

import type { Organization } from "@holdfast/contracts/endpoints/organizations";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable } from "../database/connect.ts";

export type OrganizationRow = { id: string; slug: string; name: string; created_at: Date };

export function toOrganization(row: OrganizationRow): Organization {
  return { id: row.id, slug: row.slug, name: row.name, created_at: row.created_at.toISOString() };
}

/** With its first project: an organization without one has nowhere to put anything. */
export async function insertOrganization(
  db: Queryable,
  organization: { slug: string; name: string },
): Promise<OrganizationRow | undefined> {
  const id = uuidv7();
  const [row] = await db<OrganizationRow[]>`
    INSERT INTO organizations (id, slug, name) VALUES (${id}, ${organization.slug}, ${organization.name})
    ON CONFLICT (slug) DO NOTHING
    RETURNING id, slug, name, created_at`;
  if (row)
    await db`INSERT INTO projects (id, org_id, slug, name) VALUES (${uuidv7()}, ${id}, 'default', 'Default')`;
  return row;
}

export async function selectOrganization(db: Queryable, id: string): Promise<OrganizationRow | undefined> {
  const [row] = await db<OrganizationRow[]>`SELECT id, slug, name, created_at FROM organizations WHERE id = ${id}`;
  return row;
}

/** All of them for an operator, otherwise those of `userId` or the token's own. */
export async function selectOrganizations(
  db: Queryable,
  which: { all: boolean; userId: string | null; orgId: string | null },
  page: { before: string; limit: number },
): Promise<OrganizationRow[]> {
  return db<OrganizationRow[]>`
    SELECT id, slug, name, created_at FROM organizations o
    WHERE id < ${page.before}
      AND (${which.all} OR id = ${which.orgId}
           OR EXISTS (SELECT FROM memberships m WHERE m.org_id = o.id AND m.user_id = ${which.userId}))
    ORDER BY id DESC LIMIT ${page.limit + 1}`;
}

export async function renameOrganization(
  db: Queryable,
  id: string,
  name: string,
): Promise<OrganizationRow | undefined> {
  const [row] = await db<OrganizationRow[]>`
    UPDATE organizations SET name = ${name} WHERE id = ${id} RETURNING id, slug, name, created_at`;
  return row;
}
