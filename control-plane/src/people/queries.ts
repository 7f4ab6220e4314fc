// SQL of people. Runs as the system role: at sign-in nobody has an organization yet.

import type { Role } from "@holdfast/contracts/public/permissions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable } from "../database/connect.ts";

export type UserRow = { id: string; email: string; name: string; password_hash: string; operator: boolean };

export async function findUser(db: Queryable, email: string): Promise<UserRow | undefined> {
  const [row] = await db<UserRow[]>`
    SELECT id, email, name, password_hash, operator FROM users WHERE email = ${email}`;
  return row;
}

export async function findUserById(db: Queryable, id: string): Promise<UserRow | undefined> {
  const [row] = await db<UserRow[]>`SELECT id, email, name, password_hash, operator FROM users WHERE id = ${id}`;
  return row;
}

/** Undefined when the email has an account already. */
export async function insertUser(db: Queryable, user: Omit<UserRow, "id">): Promise<UserRow | undefined> {
  const [row] = await db<UserRow[]>`
    INSERT INTO users (id, email, name, password_hash, operator)
    VALUES (${uuidv7()}, ${user.email}, ${user.name}, ${user.password_hash}, ${user.operator})
    ON CONFLICT (email) DO NOTHING
    RETURNING id, email, name, password_hash, operator`;
  return row;
}

export async function operators(db: Queryable): Promise<{ id: string; email: string }[]> {
  return db<{ id: string; email: string }[]>`SELECT id, email FROM users WHERE operator ORDER BY id`;
}

export async function setPassword(db: Queryable, userId: string, passwordHash: string): Promise<void> {
  await db`UPDATE users SET password_hash = ${passwordHash} WHERE id = ${userId}`;
}

export async function insertMembership(
  db: Queryable,
  membership: { orgId: string; userId: string; role: Role },
): Promise<void> {
  await db`
    INSERT INTO memberships (org_id, user_id, role)
    VALUES (${membership.orgId}, ${membership.userId}, ${membership.role})
    ON CONFLICT DO NOTHING`;
}
