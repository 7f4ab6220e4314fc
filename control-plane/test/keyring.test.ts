// The sealed keys on a real PostgreSQL: replicas that race, a KEK that changes, and what an
// attacker with the database alone would find.

import { randomBytes } from "node:crypto";
import { UsageError } from "@holdfast/kit/settings";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import type { Kek, Keks } from "../src/mechanisms/sealing/keks.ts";
import { openKeyring } from "../src/mechanisms/sealing/keyring.ts";
import { rewrapSome } from "../src/secrets/kek/rewrap.ts";

let system: Sql;
let app: Sql;
let superuser: Sql;
beforeAll(async () => {
  ({ system, app, superuser } = openRoles(await createTestDatabase()));
});
beforeEach(async () => {
  await superuser`DELETE FROM sealed_keys`;
});

const kekNamed = (id: string): Kek => ({ id, key: randomBytes(32) });
const rewrap = (keks: Keks) => system.begin((tx) => rewrapSome(tx, keks, 100));
const stored = () => superuser`SELECT * FROM sealed_keys ORDER BY name`;

async function refusal(opening: Promise<unknown>): Promise<string> {
  const error = await opening.then(
    () => new Error("it was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof UsageError) return error.message;
  throw error;
}

describe("the keyring", () => {
  it("SEC-02 makes a value once and finds it again, in this process and the next", async () => {
    const current = kekNamed("k1");
    const keyring = await openKeyring(system, { current });
    expect(await keyring.get("ca")).toBeUndefined();
    const made = await keyring.getOrCreate("ca", () => randomBytes(48));
    expect(await keyring.getOrCreate("ca", () => randomBytes(48))).toEqual(made);
    expect(await (await openKeyring(system, { current })).get("ca")).toEqual(made);
  });

  it("SEC-02 gives replicas that race the same value", async () => {
    const current = kekNamed("k1");
    const replicas = await Promise.all(Array.from({ length: 4 }, () => openKeyring(system, { current })));
    for (const name of ["a", "b", "c", "d", "e"]) {
      const values = await Promise.all(
        replicas.map((replica) => replica.getOrCreate(name, () => randomBytes(32))),
      );
      expect(new Set(values.map((value) => value.toString("hex"))).size, name).toBe(1);
    }
    expect(await stored()).toHaveLength(5);
  });

  it("SEC-02 stores nothing that shows the value, and shows the application role nothing at all", async () => {
    const value = Buffer.from("CANARY-canary-CANARY-canary-CANARY");
    const current = kekNamed("k1");
    await (await openKeyring(system, { current })).getOrCreate("ca", () => value);
    const [row] = await stored();
    for (const column of Object.values(row ?? {})) {
      const text = Buffer.isBuffer(column) ? column : Buffer.from(String(column));
      expect(text.includes(value)).toBe(false);
      expect(text.includes(current.key)).toBe(false);
    }
    const [whole] = await superuser`SELECT sealed_keys::text AS text FROM sealed_keys`;
    expect(whole?.["text"]).not.toContain(value.toString("hex"));
    await expect(app`SELECT * FROM sealed_keys`).rejects.toMatchObject({ code: "42501" });
  });
});

describe("a change of the KEK", () => {
  const old = kekNamed("2025");
  const current = kekNamed("2026");
  let value: Buffer;
  beforeEach(async () => {
    const keyring = await openKeyring(system, { current: old });
    value = await keyring.getOrCreate("ca", () => randomBytes(32));
    await keyring.getOrCreate("signing", () => randomBytes(32));
  });

  it("SEC-02 changes nothing at start: replicas that have only the old KEK go on", async () => {
    const before = await stored();
    expect(await (await openKeyring(system, { current, previous: old })).get("ca")).toEqual(value);
    expect(await stored()).toEqual(before);
    expect(await (await openKeyring(system, { current: old })).get("ca")).toEqual(value);
  });

  it("SEC-02 rewraps everything on request, after which the old KEK is not needed", async () => {
    const before = await stored();
    expect(await rewrap({ current, previous: old })).toBe(2);
    const after = await stored();
    expect(after.map((row) => row["kek_id"])).toEqual(["2026", "2026"]);
    expect(after.map((row) => row["sealed_value"])).toEqual(before.map((row) => row["sealed_value"]));
    expect(await (await openKeyring(system, { current })).get("ca")).toEqual(value);
    expect(await rewrap({ current, previous: old })).toBe(0);
  });

  it("SEC-02 is safe when replicas rewrap together", async () => {
    const keks = { current, previous: old };
    const done = await Promise.all(Array.from({ length: 4 }, () => rewrap(keks)));
    expect(done.reduce((sum, one) => sum + one)).toBe(2);
    expect(await (await openKeyring(system, keks)).get("ca")).toEqual(value);
  });

  it("SEC-02 then refuses the old KEK alone, and names what to set", async () => {
    await rewrap({ current, previous: old });
    const before = await stored();
    const message = await refusal(openKeyring(system, { current: old }));
    for (const part of ['"2026"', '"2025"', "HOLDFAST_KEK_BASE64", "HOLDFAST_PREVIOUS_KEK_BASE64"]) {
      expect(message).toContain(part);
    }
    expect(await stored()).toEqual(before);
  });

  it("SEC-02 is refused without the previous KEK, with nothing changed", async () => {
    const before = await stored();
    expect(await refusal(openKeyring(system, { current }))).toContain("HOLDFAST_PREVIOUS_KEK_ID");
    expect(await stored()).toEqual(before);
  });

  it("SEC-02 is refused with another key of the previous name, with nothing changed", async () => {
    const before = await stored();
    const message = await refusal(openKeyring(system, { current, previous: kekNamed("2025") }));
    expect(message).toContain("HOLDFAST_PREVIOUS_KEK_BASE64 is a different key");
    expect(await stored()).toEqual(before);
  });

  it("SEC-02 changes all keys of a batch or none", async () => {
    const before = await stored();
    await superuser`UPDATE sealed_keys SET kek_id = 'lost' WHERE name = 'signing'`;
    await expect(rewrap({ current, previous: old })).rejects.toThrow('sealed under the KEK "lost"');
    const [first] = await stored();
    expect(first, "the first had been rewrapped before the second failed").toEqual(before[0]);
    expect(await refusal(openKeyring(system, { current, previous: old }))).toContain('"signing"');
  });

  it("SEC-02 refuses a wrong KEK under the same name, with nothing changed", async () => {
    const before = await stored();
    const message = await refusal(openKeyring(system, { current: kekNamed("2025") }));
    expect(message).toContain("HOLDFAST_KEK_BASE64 is a different key");
    expect(message).toContain("Nothing was changed");
    expect(await stored()).toEqual(before);
  });

  it("SEC-02 goes without downtime: what a replica with the old KEK adds meanwhile is readable", async () => {
    const behind = await openKeyring(system, { current: old, previous: current });
    const ahead = await openKeyring(system, { current, previous: old });
    await rewrap({ current, previous: old });
    const added = await behind.getOrCreate("late", () => randomBytes(32));
    expect(await ahead.get("late")).toEqual(added);
    expect(await ahead.getOrCreate("late", () => randomBytes(32))).toEqual(added);
    expect(await behind.get("ca"), "and it reads what was re-wrapped").toEqual(value);
  });

  it("SEC-02 says so when a value was sealed with another KEK of the same name after the start", async () => {
    await superuser`DELETE FROM sealed_keys`;
    const one = await openKeyring(system, { current: kekNamed("same") });
    const two = await openKeyring(system, { current: kekNamed("same") });
    await one.getOrCreate("ca", () => randomBytes(32));
    expect(await refusal(two.get("ca"))).toContain("HOLDFAST_KEK_BASE64 is a different key");
  });

  it("SEC-02 refuses a value that was moved to another name in the database", async () => {
    await superuser`
      UPDATE sealed_keys SET wrapped_key = ca.wrapped_key, sealed_value = ca.sealed_value
      FROM sealed_keys ca WHERE ca.name = 'ca' AND sealed_keys.name = 'signing'`;
    await refusal(openKeyring(system, { current: old }));
    expect(await refusal(openKeyring(system, { current: old }))).toContain('"signing"');
  });
});
