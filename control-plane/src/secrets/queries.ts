// SQL of secrets. Those with a Tx run confined to one organization, as a role that cannot read what is sealed.

import type { Secret, SecretUse } from "@holdfast/contracts/endpoints/secrets";
import type { Queryable, Tx } from "../database/connect.ts";
import type { SealedSecret, SecretIdentity } from "./envelope.ts";

export type SecretRow = {
  id: string;
  org_id: string;
  name: string;
  version: number;
  key_version: number;
  members_may_use: boolean;
  creator_name: string;
  created_at: Date;
  changer_name: string;
  changed_at: Date;
  key_changed_at: Date;
  uses: number;
  last_used_at: Date | null;
};

export function presentSecret(row: SecretRow): Secret {
  const { id, name, version, members_may_use, uses } = row;
  return {
    ...{ id, name, version, members_may_use, uses, created_by: row.creator_name, changed_by: row.changer_name },
    created_at: row.created_at.toISOString(),
    changed_at: row.changed_at.toISOString(),
    key_changed_at: row.key_changed_at.toISOString(),
    last_used_at: row.last_used_at?.toISOString() ?? null,
  };
}

/** By name. `usableOnly`: those that members may use. */
export async function selectSecrets(
  tx: Tx,
  { id = null, usableOnly }: { id?: string | null; usableOnly: boolean },
): Promise<SecretRow[]> {
  return tx<SecretRow[]>`
    SELECT s.id, s.org_id, s.name, s.version, s.key_version, s.members_may_use, s.creator_name, s.created_at, s.changer_name,
           s.changed_at, s.key_changed_at, u.uses, u.last_used_at
    FROM secrets s CROSS JOIN LATERAL (
      SELECT count(*)::int AS uses, max(e.created_at) AS last_used_at FROM executions e WHERE e.secret_id = s.id) u
    WHERE (${id}::uuid IS NULL OR s.id = ${id}) AND (s.members_may_use OR NOT ${usableOnly})
    ORDER BY lower(s.name), s.name`;
}

const MOST_SHOWN = 20;

export async function selectUse(tx: Tx, id: string): Promise<SecretUse> {
  const workflows = await tx<{ workflow_id: string; uses: number; last_used_at: Date }[]>`
    SELECT workflow_id, count(*)::int AS uses, max(created_at) AS last_used_at FROM executions
    WHERE secret_id = ${id} GROUP BY workflow_id ORDER BY max(created_at) DESC, workflow_id LIMIT ${MOST_SHOWN}`;
  const executions = await tx<(Omit<SecretUse["executions"][number], "used_at"> & { used_at: Date })[]>`
    SELECT id, request_id, workflow_id, secret_version AS version, status, created_at AS used_at FROM executions
    WHERE secret_id = ${id} ORDER BY id DESC LIMIT ${MOST_SHOWN}`;
  return {
    workflows: workflows.map((one) => ({ ...one, last_used_at: one.last_used_at.toISOString() })),
    executions: executions.map((one) => ({ ...one, used_at: one.used_at.toISOString() })),
  };
}

/** Two that set secrets of one organization wait for each other, so that its limit and the versions are right. */
export async function lockSecrets(tx: Tx, orgId: string): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`secrets of ${orgId}`}, 0))`;
}

export async function countSecrets(tx: Tx): Promise<number> {
  const [row] = await tx<{ n: number }[]>`SELECT count(*)::int AS n FROM secrets`;
  return row?.n ?? 0;
}

/** Call with the lock. */
export async function findSecret(tx: Tx, name: string): Promise<SecretIdentity | undefined> {
  const [row] = await tx<SecretIdentity[]>`SELECT id, org_id, version FROM secrets WHERE name = ${name}`;
  return row;
}

export type SecretChange = { sealed: SealedSecret; by: string; membersMayUse: boolean | undefined };

export async function insertSecret(
  tx: Tx,
  { id, org_id, version }: SecretIdentity,
  { name, sealed, by, membersMayUse = false }: SecretChange & { name: string },
): Promise<void> {
  await tx`
    INSERT INTO secrets (id, org_id, name, version, members_may_use, kek_id, wrapped_key, sealed_value, creator_name, changer_name)
    VALUES (${id}, ${org_id}, ${name}, ${version}, ${membersMayUse}, ${sealed.kekId}, ${sealed.wrappedKey},
      ${sealed.sealedValue}, ${by}, ${by})`;
}

/** The next version. The value before it is gone. */
export async function replaceValue(
  tx: Tx,
  { id, version }: SecretIdentity,
  { sealed, by, membersMayUse }: SecretChange,
): Promise<void> {
  await tx`
    UPDATE secrets SET version = ${version}, key_version = key_version + 1, kek_id = ${sealed.kekId},
      wrapped_key = ${sealed.wrappedKey}, sealed_value = ${sealed.sealedValue}, changer_name = ${by}, changed_at = now(),
      key_changed_at = now(), wrapped_at = now(), members_may_use = coalesce(${membersMayUse ?? null}, members_may_use)
    WHERE id = ${id}`;
}

/** False: another value or data key came first. */
export async function replaceKey(
  tx: Tx,
  { id, key_version }: { id: string; key_version: number },
  sealed: SealedSecret,
): Promise<boolean> {
  const rows = await tx`
    UPDATE secrets SET key_version = key_version + 1, kek_id = ${sealed.kekId}, wrapped_key = ${sealed.wrappedKey},
      sealed_value = ${sealed.sealedValue}, key_changed_at = now(), wrapped_at = now()
    WHERE id = ${id} AND key_version = ${key_version} RETURNING id`;
  return rows.length > 0;
}

export async function removeSecret(tx: Tx, id: string): Promise<void> {
  await tx`DELETE FROM secrets WHERE id = ${id}`;
}

export type StoredSecret = SecretIdentity & { name: string; key_version: number; sealed: SealedSecret };

type SealedRow = SecretIdentity & {
  name: string;
  key_version: number;
  kek_id: string;
  wrapped_key: Buffer;
  sealed_value: Buffer;
};

/**
 * For a step that this person requests: of their organization, and theirs to use. Undefined: there is none, whatever the reason, so that
 * nothing is disclosed.
 */
export async function selectUsable(
  system: Queryable,
  wanted: { orgId: string; userId: string; name: string | null; id: string | null },
): Promise<StoredSecret | undefined> {
  const [row] = await system<SealedRow[]>`
    SELECT s.id, s.org_id, s.name, s.version, s.key_version, s.kek_id, s.wrapped_key, s.sealed_value
    FROM secrets s
    WHERE s.org_id = ${wanted.orgId} AND (s.name = ${wanted.name} OR s.id = ${wanted.id}) AND EXISTS (
      SELECT FROM memberships m WHERE m.org_id = s.org_id AND m.user_id = ${wanted.userId}
        AND (m.role <> 'member' OR s.members_may_use)
      UNION ALL SELECT FROM organizations o WHERE o.id = s.org_id AND o.service_user_id = ${wanted.userId} AND s.members_may_use)`;
  return row && toStored(row);
}

/** By the role that can read what is sealed. */
export async function selectSealed(
  system: Queryable,
  { id, orgId }: { id: string; orgId: string },
): Promise<StoredSecret | undefined> {
  const [row] = await system<SealedRow[]>`
    SELECT id, org_id, name, version, key_version, kek_id, wrapped_key, sealed_value FROM secrets
    WHERE id = ${id} AND org_id = ${orgId}`;
  return row && toStored(row);
}

function toStored({
  kek_id: kekId,
  wrapped_key: wrappedKey,
  sealed_value: sealedValue,
  ...row
}: SealedRow): StoredSecret {
  return { ...row, sealed: { kekId, wrappedKey, sealedValue } };
}
