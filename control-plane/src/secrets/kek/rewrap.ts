// Replaces the KEK around data keys, some at a time, while everything runs. Each batch is one transaction and begins with what is
// stored, so whoever is killed is followed by anybody who continues. Values are not opened: what a replica has in memory stays valid.

import type { Queryable, Tx } from "../../database/connect.ts";
import { rewrapKey } from "../../mechanisms/sealing/envelope.ts";
import { type Keks, kekNamed } from "../../mechanisms/sealing/keks.ts";
import { secretContext } from "../envelope.ts";

export type SealedCount = { kek_id: string; platform_keys: number; secrets: number };

export async function countSealed(db: Queryable): Promise<SealedCount[]> {
  return db<SealedCount[]>`
    SELECT kek_id, sum(platform)::int AS platform_keys, sum(secret)::int AS secrets FROM (
      SELECT kek_id, count(*) AS platform, 0 AS secret FROM sealed_keys GROUP BY kek_id
      UNION ALL SELECT kek_id, 0, count(*) FROM secrets GROUP BY kek_id) AS counted
    GROUP BY kek_id ORDER BY kek_id`;
}

export const waitingOf = (counts: readonly SealedCount[], current: string): number =>
  counts.filter(({ kek_id }) => kek_id !== current).reduce((sum, one) => sum + one.platform_keys + one.secrets, 0);

/**
 * Returns how many were rewrapped; fewer than `limit`: there are no more. Throws KekMissing, with nothing changed, if one of them is
 * under a KEK that this process does not have.
 *
 * Locks the rows in the order of their ids: batches of two processes follow each other, and whoever sets a secret waits for the batch.
 */
export async function rewrapSome(tx: Tx, keks: Keks, limit: number): Promise<number> {
  const keys = await rewrapPlatformKeys(tx, keks, limit);
  return keys === limit ? keys : keys + (await rewrapSecrets(tx, keks, limit - keys));
}

async function rewrapPlatformKeys(tx: Tx, keks: Keks, limit: number): Promise<number> {
  const rows = await tx<{ name: string; kek_id: string; wrapped_key: Buffer }[]>`
    SELECT name, kek_id, wrapped_key FROM sealed_keys WHERE kek_id <> ${keks.current.id}
    ORDER BY name LIMIT ${limit} FOR UPDATE`;
  for (const { name, kek_id, wrapped_key } of rows) {
    const wrapped = rewrapped(keks, kek_id, name, wrapped_key);
    await tx`
      UPDATE sealed_keys SET kek_id = ${keks.current.id}, wrapped_key = ${wrapped}, wrapped_at = now() WHERE name = ${name}`;
  }
  return rows.length;
}

async function rewrapSecrets(tx: Tx, keks: Keks, limit: number): Promise<number> {
  const rows = await tx<{ id: string; org_id: string; version: number; kek_id: string; wrapped_key: Buffer }[]>`
    SELECT id, org_id, version, kek_id, wrapped_key FROM secrets WHERE kek_id <> ${keks.current.id}
    ORDER BY id LIMIT ${limit} FOR UPDATE`;
  for (const row of rows) {
    const wrapped = rewrapped(keks, row.kek_id, secretContext(row), row.wrapped_key);
    await tx`
      UPDATE secrets SET kek_id = ${keks.current.id}, wrapped_key = ${wrapped}, wrapped_at = now() WHERE id = ${row.id}`;
  }
  return rows.length;
}

function rewrapped(keks: Keks, kekId: string, context: string, wrappedKey: Buffer): Buffer {
  return rewrapKey({ from: kekNamed(keks, kekId).key, to: keks.current.key }, context, wrappedKey);
}
