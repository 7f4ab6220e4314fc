// Values on their way to PostgreSQL and back, as every caller sees them.

import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { clientAddress } from "../src/database/sql/address.ts";

let sql: Sql;
beforeAll(async () => {
  sql = openRoles(await createTestDatabase()).superuser;
});

const at = new Date("2026-02-03T04:05:06.789Z");
const bytes = Buffer.from([0, 1, 0x5c, 0x22, 255]);

describe("a value from the database", () => {
  it.each<[string, unknown]>([
    ["true", true],
    ["'7'::smallint", 7],
    ["-7", -7],
    ["9007199254740993::bigint", "9007199254740993"],
    ["count(*)", "1"],
    ["1.50::numeric", "1.50"],
    ["1.5::real", 1.5],
    ["'NaN'::float8", Number.NaN],
    ["'text'", "text"],
    ["'2026-02-03 04:05:06.789+00'::timestamptz", at],
    ["'2026-02-03'::date", new Date("2026-02-03")],
    ["interval '1 day'", "1 day"],
    ["'\\x00015c22ff'::bytea", bytes],
    ["'00000000-0000-4000-8000-000000000000'::uuid", "00000000-0000-4000-8000-000000000000"],
    [`'{"a": [1, null]}'::json`, { a: [1, null] }],
    [`'"x"'::jsonb`, "x"],
    ["NULL", null],
    ["ARRAY[1, NULL]", [1, null]],
    ["ARRAY[1::bigint]", ["1"]],
    ["ARRAY[1.50]", ["1.50"]],
    ["ARRAY[true, false]", [true, false]],
    ["ARRAY['2026-02-03 04:05:06.789+00'::timestamptz]", [at]],
    ["ARRAY['\\x00015c22ff'::bytea]", [bytes]],
    [`ARRAY['{"a": "\\"}"}'::jsonb]`, [{ a: '"}' }]],
    ["ARRAY['a b', 'NULL', '', '{,}', '\"', NULL]", ["a b", "NULL", "", "{,}", '"', null]],
    ["ARRAY['00000000-0000-4000-8000-000000000000'::uuid]", ["00000000-0000-4000-8000-000000000000"]],
    ["ARRAY[ARRAY[1, 2], ARRAY[3, 4]]", [[1, 2], [3, 4]]], // biome-ignore format: as one row
    ["'{}'::text[]", []],
    ["'[0:1]={a,b}'::text[]", ["a", "b"]],
    ["current_schemas(false)", ["holdfast"]],
  ])("OPS-02 %s", async (expression, value) => {
    const [row] = await sql.unsafe(`SELECT ${expression} AS value`);
    expect(row?.["value"]).toEqual(value);
  });
});

describe("a value to the database", () => {
  it("OPS-02 arrives as what it is", async () => {
    const [row] = await sql`
      SELECT ${1}::integer AS number, ${2n ** 60n}::bigint AS big, ${1.5}::float8 AS float, ${false}::boolean AS truth,
        ${at}::timestamptz AS at, ${bytes}::bytea AS bytes, ${new Uint8Array(bytes)}::bytea AS view,
        ${sql.json({ a: ["'"] })}::jsonb AS json, ${sql.json("x")}::json AS text, ${sql.json(null)}::jsonb AS nothing,
        ${null}::text AS missing, ${[at]}::timestamptz[] AS dates, ${[bytes, null]}::bytea[] AS blobs,
        ${[sql.json({ a: '"' })]}::jsonb[] AS documents, ${[1, 2]}::integer[] AS numbers, ${[true]}::boolean[] AS truths`;
    expect(row).toEqual({
      ...{ number: 1, big: String(2n ** 60n), float: 1.5, truth: false, at, bytes, view: bytes },
      ...{ json: { a: ["'"] }, text: "x", nothing: null, missing: null },
      ...{ dates: [at], blobs: [bytes, null], documents: [{ a: '"' }], numbers: [1, 2], truths: [true] },
    });
  });

  it("OPS-02 comes back as it went, in text and in arrays of text", async () => {
    const text = fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\0", ""));
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.option(text)), fc.json(), async (one, many, json) => {
        const [row] = await sql`
          SELECT ${one}::text AS one, ${many}::text[] AS many, ${sql.json(JSON.parse(json))}::json AS json`;
        expect(row).toEqual({ one, many, json: JSON.parse(json) });
      }),
      { numRuns: 200 },
    );
  });

  it("OPS-02 counts what a statement returned or changed", async () => {
    expect(await sql`SELECT FROM generate_series(1, 3)`).toMatchObject({ length: 3, count: 3 });
    await sql`CREATE TABLE counted AS SELECT 1 AS n FROM generate_series(1, 5)`;
    expect(await sql`UPDATE counted SET n = 2`).toMatchObject({ length: 0, count: 5 });
    expect(await sql`UPDATE counted SET n = 3 RETURNING n`).toMatchObject({ length: 5, count: 5 });
    expect((await sql`DROP TABLE counted`).count).toBe(0);
    expect(await sql.unsafe("SELECT 1 AS one; SELECT 2 AS two")).toEqual([{ two: 2 }]);
  });
});

describe("a database's address", () => {
  const address = (url: string) => clientAddress(url, { search_path: "a b", role: "x" });

  it("OPS-02 is a host, or the directory of a socket", () => {
    expect(address("postgres://me:p%40ss@db.example:6000/my%20db")).toEqual({
      ...{ host: "db.example", port: 6000, user: "me", password: "p@ss", database: "my db", ssl: false },
      options: "-c search_path=a\\ b -c role=x",
    });
    expect(address("postgres://me@[::1]/x")).toMatchObject({ host: "::1", port: 5432 });
    expect(address("postgres://me@%2Frun%2Fpg/x")).toMatchObject({ host: "/run/pg" });
    expect(address("postgres://h/x?options=-c%20geqo%3Doff").options).toMatch(/^-c geqo=off -c search_path/);
  });

  it("OPS-02 asks for TLS as it says", () => {
    const ssl = (query: string) => address(`postgres://h/x?${query}`).ssl;
    expect(ssl("sslmode=disable")).toBe(false);
    expect(ssl("sslmode=require")).toEqual({ rejectUnauthorized: false });
    expect(ssl("sslmode=verify-full")).toEqual({});
    expect(ssl("sslmode=verify-ca")).toEqual({ checkServerIdentity: expect.any(Function) });
    expect(ssl("sslrootcert=system")).toEqual({});
    expect(() => ssl("sslmode=verify-full&sslrootcert=/no/such/file")).toThrow("/no/such/file");
  });
});
