// The KEK is replaced while replicas run and write. The process that rewraps is killed within every batch and after every batch.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { getKekStatus, rewrapKeys, setSecret } from "@holdfast/contracts/endpoints/secrets";
import { describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles, type TestDatabase } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import type { Kek, Keks } from "../src/mechanisms/sealing/keks.ts";
import { openSecret, type SealedSecret, type SecretIdentity } from "../src/secrets/envelope.ts";
import { obstaclesTo } from "../src/secrets/kek/standing.ts";

const old: Kek = { id: "2025", key: Buffer.alloc(32, 7) };
const next: Kek = { id: "2026", key: Buffer.alloc(32, 8) };
const program = fileURLToPath(new URL("support/rewrap.ts", import.meta.url));

const envOf = ({ current, previous }: Keks): Record<string, string> => ({
  HOLDFAST_KEK_ID: current.id,
  HOLDFAST_KEK_BASE64: current.key.toString("base64"),
  ...(previous
    ? { HOLDFAST_PREVIOUS_KEK_ID: previous.id, HOLDFAST_PREVIOUS_KEK_BASE64: previous.key.toString("base64") }
    : {}),
});

/** Runs until the given line, and is killed there. False: it ended by itself before. */
async function rewrapUntil(
  database: TestDatabase,
  limit: number,
  killAt: { line: string; nth: number },
): Promise<boolean> {
  const argument = ({ id, key }: Kek) => `${id}=${key.toString("base64")}`;
  const args = [program, database.systemUrl, argument(next), argument(old), String(limit)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let left = killAt.nth;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === killAt.line) left -= 1;
    if (left === 0) child.kill("SIGKILL");
    else child.stdin.write("\n");
  }
  const [code, signal] = await exited;
  expect([code, signal]).toEqual(left === 0 ? [null, "SIGKILL"] : [0, null]);
  return left === 0;
}

/** By name, opened with these KEKs only. */
async function valuesOf(superuser: Sql, keks: Keks): Promise<Map<string, string>> {
  const rows = await superuser<
    (SecretIdentity & { name: string; kek_id: string; wrapped_key: Buffer; sealed_value: Buffer })[]
  >`SELECT * FROM secrets`;
  return new Map(
    rows.map((row) => {
      const sealed: SealedSecret = {
        kekId: row.kek_id,
        wrappedKey: row.wrapped_key,
        sealedValue: row.sealed_value,
      };
      return [row.name, openSecret(keks, row, sealed)];
    }),
  );
}

/** Sets secrets through an api until it is stopped. Returns the value that each was given last. */
function keepWriting(api: TestApi, org: TestOrg, prefix: string) {
  const written = new Map<string, string>();
  let going = true;
  const done = (async () => {
    for (let count = 0; going; count += 1) {
      const name = `${prefix}-${count % 5}`;
      const value = `value ${prefix} ${count}`;
      await api.operator(org.id)(setSecret, { body: { name, value } });
      written.set(name, value);
    }
  })();
  return {
    written,
    stop() {
      going = false;
      return done;
    },
  };
}

async function messageOf(starting: Promise<unknown>): Promise<string> {
  return starting.then(
    () => "it started",
    (error: unknown) => (error as Error).message,
  );
}

describe("the rotation of the KEK", () => {
  it("SEC-02 loses nothing, killed at every step, while replicas with either KEK write", async () => {
    const behind = await startTestApi({ env: envOf({ current: old, previous: next }) });
    const { database } = behind;
    const { superuser } = openRoles(database);
    const org = await createOrg(behind, "org-one");
    const expected = new Map<string, string>();
    for (let count = 0; count < 6; count += 1) {
      await behind.operator(org.id)(setSecret, {
        body: { name: `still-${count}`, value: `still value ${count}` },
      });
      expected.set(`still-${count}`, `still value ${count}`);
    }
    const sealedBefore = await superuser`SELECT name, sealed_value FROM secrets ORDER BY name`;
    expect(await messageOf(startTestApi({ database, env: envOf({ current: next }) }))).toMatch(
      /sealed under the KEK "2025", but this process has "2026".*HOLDFAST_PREVIOUS_KEK_BASE64/,
    );

    const ahead = await startTestApi({ database, env: envOf({ current: next, previous: old }) });
    const status = () => ahead.operator()(getKekStatus, {});
    const { waiting: atFirst, ...first } = await status();
    expect(first).toMatchObject({ current: "2026", previous: "2025", unneeded: false });
    expect(first.apis.map(({ kek_ids }) => kek_ids)).toEqual(
      expect.arrayContaining([
        ["2026", "2025"],
        ["2025", "2026"],
      ]),
    );
    const writers = [keepWriting(behind, org, "behind"), keepWriting(ahead, org, "ahead")];

    // Nothing of a batch that was killed within is done; all of one that was killed after.
    const limit = 3;
    expect(await rewrapUntil(database, limit, { line: "within", nth: 1 })).toBe(true);
    let kills = 1;
    for (let nth = 1; nth <= atFirst / limit; nth += 1) {
      await rewrapUntil(database, limit, { line: "after", nth: 1 });
      await rewrapUntil(database, limit, { line: "within", nth: 1 });
      kills += 2;
    }
    expect(kills).toBeGreaterThan(6);
    await Promise.all(writers.map((writer) => writer.stop()));
    for (const { written } of writers) for (const [name, value] of written) expected.set(name, value);

    // The replica that is behind has written under the old KEK: the check names it.
    const { obstacles } = await status();
    expect(obstacles.join(" ")).toContain('seals with the KEK "2025"');
    await behind.stop();
    for (;;) {
      const { waiting } = await ahead.operator()(rewrapKeys, { body: { to: "2026", limit: 2 } });
      if (waiting === 0) break;
    }
    expect(await status()).toMatchObject({
      ...{ waiting: 0, unneeded: true, obstacles: [], apis: [{ kek_ids: ["2026", "2025"] }] },
      sealed: [{ kek_id: "2026" }],
    });
    const values = await valuesOf(superuser, { current: next });
    expect([...values].sort()).toEqual([...expected].sort());
    const sealedAfter =
      await superuser`SELECT name, sealed_value FROM secrets WHERE name LIKE 'still-%' ORDER BY name`;
    expect(sealedAfter, "values were not touched").toEqual(sealedBefore);
    await ahead.stop();

    expect(await messageOf(startTestApi({ database, env: envOf({ current: old }) }))).toMatch(
      /under the KEK "2026"/,
    );
    const after = await startTestApi({ database, env: envOf({ current: next }) });
    await after.operator(org.id)(setSecret, { body: { name: "still-0", value: "a later value" } });
    expect((await valuesOf(superuser, { current: next })).get("still-0")).toBe("a later value");
  });

  it("SEC-02 stops an api that could open the keys of the platform and not all secrets", async () => {
    const api = await startTestApi({ env: envOf({ current: old }) });
    const { superuser } = openRoles(api.database);
    const org = await createOrg(api, "org-one");
    await api.operator(org.id)(setSecret, { body: { name: "lost", value: "a lost value" } });
    await superuser`UPDATE secrets SET kek_id = 'lost-kek'`;
    const message = await messageOf(startTestApi({ database: api.database, env: envOf({ current: old }) }));
    expect(message).toMatch(/^1 secrets are sealed under the KEK "lost-kek", but this process has "2025"/);
  });
});

describe("a KEK that is not the current one", () => {
  const sealed = [{ kek_id: "2026", platform_keys: 9, secrets: 4 }];
  const apis = [{ hostname: "one", kek_ids: ["2026", "2025"] }];
  it.for([
    ["nothing is under it", { sealed, apis }, []],
    [
      "a row is under it",
      { sealed: [...sealed, { kek_id: "2025", platform_keys: 0, secrets: 1 }], apis },
      [/0 platform keys and 1 secrets are under the KEK "2025"/],
    ],
    [
      "a process seals with it",
      { sealed, apis: [...apis, { hostname: "two", kek_ids: ["2025", "2026"] }] },
      [/on two seals with the KEK "2025"/],
    ],
    ["a process does not say", { sealed, apis: [{ hostname: "old", kek_ids: [] }] }, [/on old does not report/]],
  ] as const)("SEC-02 is unneeded or not: %s", ([, found, why]) => {
    const obstacles = obstaclesTo("2026", found);
    expect(obstacles).toHaveLength(why.length);
    for (const [index, part] of why.entries()) expect(obstacles[index]).toMatch(part);
  });
});
