// The sealed keys of the platform, stored in PostgreSQL and readable only with the KEK. A process
// with another KEK than the one in use stops at start instead of failing later. What is sealed under the previous KEK stays
// readable, and is rewrapped by `holdfast secret rewrap` (control-plane/src/secrets/kek/).

import { UsageError } from "@holdfast/kit/settings";
import type { Queryable, Sql, Tx } from "../../database/connect.ts";
import { openEnvelope, sealEnvelope } from "./envelope.ts";
import { KekMissing, type Keks, kekNamed } from "./keks.ts";
import { sealingSettings } from "./settings.ts";

export type Keyring = {
  /**
   * The value under this name; created and stored the first time. Concurrent replicas get the same one. With a
   * transaction, it is stored in that.
   */
  getOrCreate(name: string, make: () => Buffer, tx?: Tx): Promise<Buffer>;
  /** With a transaction, includes what that has stored. */
  get(name: string, db?: Queryable): Promise<Buffer | undefined>;
};

type SealedRow = { name: string; kek_id: string; wrapped_key: Buffer; sealed_value: Buffer };

/** Proves that everything can be opened. */
export async function openKeyring(system: Sql, keks: Keks): Promise<Keyring> {
  const rows = await system<SealedRow[]>`
    SELECT name, kek_id, wrapped_key, sealed_value FROM sealed_keys ORDER BY name`;
  for (const row of rows) open(row, keks);

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
  const kek = kekOf(row, keks);
  try {
    return openEnvelope(kek.key, row.name, { wrappedKey: row.wrapped_key, sealedValue: row.sealed_value });
  } catch {
    const { env } = kek === keks.current ? sealingSettings.kek : sealingSettings.previousKek;
    throw new UsageError(
      `The key "${row.name}" is sealed under the KEK "${row.kek_id}", but ${env} is a different key of that name. ` +
        `Set ${env} to the key that it was sealed with. Nothing was changed.`,
    );
  }
}

function kekOf(row: SealedRow, keks: Keks) {
  try {
    return kekNamed(keks, row.kek_id);
  } catch (error) {
    throw error instanceof KekMissing ? kekNotSet(`The key "${row.name}" is`, error) : error;
  }
}

/** `what`: the beginning of a sentence. */
export function kekNotSet(what: string, { message, kekId }: KekMissing): UsageError {
  return new UsageError(
    `${what} ${message}. Set ${sealingSettings.previousKek.env} and ${sealingSettings.previousKekId.env} to the KEK "${kekId}" ` +
      `and run \`holdfast secret rewrap\` to change over to the new one; or set ${sealingSettings.kek.env} and ` +
      `${sealingSettings.kekId.env} to it to go on with it.`,
  );
}
