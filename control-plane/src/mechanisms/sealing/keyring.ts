// The sealed keys of the platform, stored in PostgreSQL and readable only with the KEK. A process
// with another KEK than the one in use stops at start instead of failing later.

import { UsageError } from "@holdfast/kit/settings";
import type { Queryable, Sql, Tx } from "../../database/connect.ts";
import { openEnvelope, rewrapKey, sealEnvelope } from "./envelope.ts";
import { sealingSettings } from "./settings.ts";

export type Kek = { id: string; key: Buffer };

export type Keyring = {
  /**
   * The value under this name; created and stored the first time. Concurrent replicas get the same one. With a
   * transaction, it is stored in that.
   */
  getOrCreate(name: string, make: () => Buffer, tx?: Tx): Promise<Buffer>;
  /** With a transaction, includes what that has stored. */
  get(name: string, db?: Queryable): Promise<Buffer | undefined>;
};

type Keks = { current: Kek; previous?: Kek };
type SealedRow = { name: string; kek_id: string; wrapped_key: Buffer; sealed_value: Buffer };

/** Re-wraps what is still under the previous KEK and proves that everything can be opened. */
export async function openKeyring(system: Sql, keks: Keks): Promise<Keyring> {
  await system.begin(async (tx) => {
    // Locks the rows, so that replicas starting together re-wrap each of them once.
    const rows = await tx<SealedRow[]>`
      SELECT name, kek_id, wrapped_key, sealed_value FROM sealed_keys ORDER BY name FOR UPDATE`;
    for (const row of rows) {
      open(row, keks);
      if (row.kek_id === keks.current.id) continue;
      const from = kekOf(row, keks).key;
      const wrapped = rewrapKey({ from, to: keks.current.key }, row.name, row.wrapped_key);
      await tx`
        UPDATE sealed_keys SET kek_id = ${keks.current.id}, wrapped_key = ${wrapped}, wrapped_at = now()
        WHERE name = ${row.name}`;
    }
  });

  const get = async (name: string, db: Queryable = system) => {
    const [row] = await db<SealedRow[]>`
      SELECT name, kek_id, wrapped_key, sealed_value FROM sealed_keys WHERE name = ${name}`;
    return row && open(row, keks);
  };
  return {
    get,
    async getOrCreate(name, make, tx) {
      const db = tx ?? system;
      const present = await get(name, db);
      if (present) return present;
      const made = sealEnvelope(keks.current.key, name, make());
      await db`
        INSERT INTO sealed_keys (name, kek_id, wrapped_key, sealed_value)
        VALUES (${name}, ${keks.current.id}, ${made.wrappedKey}, ${made.sealedValue})
        ON CONFLICT (name) DO NOTHING`;
      const stored = await get(name, db);
      if (!stored) throw new Error(`sealed key ${name} was not found after it was stored`);
      return stored;
    },
  };
}

/** While a KEK is being replaced, replicas with both keys can read what replicas with either key have written. */
function open(row: SealedRow, keks: Keks): Buffer {
  const { key, setting } = kekOf(row, keks);
  try {
    return openEnvelope(key, row.name, { wrappedKey: row.wrapped_key, sealedValue: row.sealed_value });
  } catch {
    throw new UsageError(
      `The key "${row.name}" is sealed under the KEK "${row.kek_id}", but ${setting} is a different key of that name. ` +
        `Set ${setting} to the key that it was sealed with. Nothing was changed.`,
    );
  }
}

function kekOf(row: SealedRow, keks: Keks): { key: Buffer; setting: string } {
  if (row.kek_id === keks.current.id) return { key: keks.current.key, setting: sealingSettings.kek.env };
  if (row.kek_id === keks.previous?.id)
    return { key: keks.previous.key, setting: sealingSettings.previousKek.env };
  throw new UsageError(
    `The key "${row.name}" is sealed under the KEK "${row.kek_id}", but this process has "${keks.current.id}". ` +
      "Set HOLDFAST_KEK_BASE64 and HOLDFAST_KEK_ID to that KEK, or set it as " +
      "HOLDFAST_PREVIOUS_KEK_BASE64 and HOLDFAST_PREVIOUS_KEK_ID to change over to the new one.",
  );
}
