// At start: an api that could not open some secrets stops instead of failing when one of them is needed.

import type { Sql } from "../../database/connect.ts";
import { KekMissing, type Keks, kekNamed } from "../../mechanisms/sealing/keks.ts";
import { kekNotSet } from "../../mechanisms/sealing/keyring.ts";
import { countSealed } from "./rewrap.ts";

/** Throws UsageError. */
export async function refuseUnknownKeks(system: Sql, keks: Keks): Promise<void> {
  for (const { kek_id, secrets } of await countSealed(system)) {
    if (secrets === 0) continue;
    try {
      kekNamed(keks, kek_id);
    } catch (error) {
      throw error instanceof KekMissing ? kekNotSet(`${secrets} secrets are`, error) : error;
    }
  }
}
