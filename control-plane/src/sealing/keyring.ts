// The sealed keys of the platform, stored in PostgreSQL and readable only with the KEK. A process
// that was given another KEK than the one in use stops at start instead of failing later.

import { UsageError } from "@holdfast/kit/settings";
import type { Sql } from "../database/connect.ts";
import { openEnvelope, rewrapKey, sealEnvelope } from "./envelope.ts";

export type Kek = { id: string; key: Buffer };

export type Keyring = {
  /** The value under this name; made and stored the first time. Replicas that race get the same one. */
  getOrCreate(name: string, make: () => Buffer): Promise<Buffer>;
  get(name: string): Promise<Buffer | undefined>;
};

type SealedRow = { name: string; kek_id: string; wrapped_key: Buffer; sealed_value: Buffer };

/** Re-wraps what is still under the previous KEK and proves that everything can be opened. */
export async function openKeyring(system: Sql, keks: { current: Kek; previous?: Kek }): Promise<Keyring> {
  await system.begin(async (tx) => {
    // Locks the rows, so that replicas starting together re-wrap each of them once.
    const rows = await tx<SealedRow[]>`
      SELECT name, kek_id, wrapped_key, sealed_value FROM sealed_keys ORDER BY name FOR UPDATE`;
    for (const row of rows) {
      const wrapped = row.kek_id === keks.current.id ? row.wrapped_key : rewrap(row, keks);
      prove(row, wrapped, keks.current);
      if (row.kek_id !== keks.current.id) {
        await tx`
          UPDATE sealed_keys SET kek_id = ${keks.current.id}, wrapped_key = ${wrapped}, wrapped_at = now()
          WHERE name = ${row.name}`;
      }
    }
  });

  const get = async (name: string) => {
    const [row] = await system<SealedRow[]>`
      SELECT name, kek_id, wrapped_key, sealed_value FROM sealed_keys WHERE name = ${name}`;
    if (row === undefined) return undefined;
    return openEnvelope(keks.current.key, name, { wrappedKey: row.wrapped_key, sealedValue: row.sealed_value });
  };
  return {
    get,
    async getOrCreate(name, make) {
      const present = await get(name);
      if (present) return present;
      const made = sealEnvelope(keks.current.key, name, make());
      await system`
        INSERT INTO sealed_keys (name, kek_id, wrapped_key, sealed_value)
        VALUES (${name}, ${keks.current.id}, ${made.wrappedKey}, ${made.sealedValue})
        ON CONFLICT (name) DO NOTHING`;
      const stored = await get(name);
      if (!stored) throw new Error(`sealed key ${name} vanished`);
      return stored;
    },
  };
}

function rewrap(row: SealedRow, keks: { current: Kek; previous?: Kek }): Buffer {
  if (row.kek_id !== keks.previous?.id) {
    throw new UsageError(
      `The key "${row.name}" is sealed under the KEK "${row.kek_id}", and this process was given "${keks.current.id}". ` +
        "Set HOLDFAST_KEK_BASE64 and HOLDFAST_KEK_ID to that KEK, or give it as " +
        "HOLDFAST_PREVIOUS_KEK_BASE64 and HOLDFAST_PREVIOUS_KEK_ID to change over to the new one.",
    );
  }
  try {
    return rewrapKey({ from: keks.previous.key, to: keks.current.key }, row.name, row.wrapped_key);
  } catch {
    throw wrongKek(row.name, keks.previous.id, "HOLDFAST_PREVIOUS_KEK_BASE64");
  }
}

function prove(row: SealedRow, wrappedKey: Buffer, kek: Kek): void {
  try {
    openEnvelope(kek.key, row.name, { wrappedKey, sealedValue: row.sealed_value });
  } catch {
    throw wrongKek(row.name, kek.id, "HOLDFAST_KEK_BASE64");
  }
}

function wrongKek(name: string, kekId: string, setting: string): UsageError {
  return new UsageError(
    `The key "${name}" is sealed under the KEK "${kekId}", but ${setting} is a different key of that name. ` +
      "Give back the key it was sealed with. Nothing was changed.",
  );
}
