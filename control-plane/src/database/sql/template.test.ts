import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConstantSql, compile, Fragment, Identifier, type TemplateValue } from "./template.ts";

const sql = (strings: TemplateStringsArray, ...values: TemplateValue[]) => new Fragment(strings, values);

/** A fragment of plain texts, parameters and further fragments, beside what it must become. */
type Expected = { fragment: Fragment; pieces: (string | { parameter: string })[] };

/** No `$`: it would be read as a parameter here. */
const plain = fc.string({ unit: fc.constantFrom("a", "'", '"', " ", "?", "\\", ";"), maxLength: 6 });

const { expected } = fc.letrec<{ expected: Expected }>((tie) => ({
  expected: fc
    .array(
      fc.record({
        text: plain,
        value: fc.oneof(
          { depthSize: "small" },
          fc.string().map((parameter) => ({ parameter })),
          plain.map((name) => ({ name })),
          tie("expected"),
        ),
      }),
      { maxLength: 5 },
    )
    .chain((parts) => plain.map((end) => build(parts, end))),
}));

type Part = { text: string; value: { parameter: string } | { name: string } | Expected };

function build(parts: Part[], end: string): Expected {
  const texts = [...parts.map(({ text }) => text), end];
  const values = parts.map(({ value }) =>
    "parameter" in value ? value.parameter : "name" in value ? new Identifier(value.name) : value.fragment,
  );
  const pieces = parts.flatMap(({ text, value }) => {
    if ("parameter" in value) return [text, value];
    return "name" in value ? [text, `"${value.name.replaceAll('"', '""')}"`] : [text, ...value.pieces];
  });
  const strings = Object.assign([...texts], { raw: texts }) as unknown as TemplateStringsArray;
  return { fragment: new Fragment(strings, values), pieces: [...pieces, end] };
}

describe("a statement from a template", () => {
  it("SEC-01 holds every value as a parameter, numbered in the order of the text", () => {
    fc.assert(
      fc.property(expected, ({ fragment, pieces }) => {
        const parameters = pieces.filter((piece) => typeof piece === "object");
        let number = 0;
        const text = pieces.map((piece) => (typeof piece === "string" ? piece : `$${++number}`)).join("");
        const statement = compile(fragment);
        expect(statement.text).toBe(text);
        expect(statement.values).toEqual(parameters.map(({ parameter }) => parameter));
        // From the memory of texts, it is the same.
        expect(compile(fragment)).toEqual(statement);
      }),
    );
  });

  it("is named by its text alone", () => {
    const read = (value: TemplateValue) => compile(sql`SELECT ${value}`);
    expect(read("a").digest).toBe(read("b").digest);
    expect(read("a").digest).not.toBe(read(new Identifier("a")).digest);
    expect(read(sql`${"a"}`)).toEqual(read("a"));
    expect(compile(sql`SELECT ${1}, ${sql``}`).text).toBe("SELECT $1, ");
  });

  it("has the text of its constants, also when another constant takes their place", () => {
    const read = (condition: string, id: string) =>
      compile(sql`SELECT ${id} WHERE ${new ConstantSql(condition)} AND ${1} = 1`);
    for (const condition of ["a = 'b'", "a = 'c'", "a = 'b'"]) {
      const { text, values } = read(condition, condition);
      expect({ text, values }).toEqual({
        text: `SELECT $1 WHERE ${condition} AND $2 = 1`,
        values: [condition, "1"],
      });
    }
    expect(read("true", "x").digest).not.toBe(read("false", "x").digest);
    const mixed = (value: TemplateValue) => compile(sql`SELECT ${value}`).text;
    expect([mixed("a"), mixed(new ConstantSql("b")), mixed("a")]).toEqual(["SELECT $1", "SELECT b", "SELECT $1"]);
  });

  it("has the text of its inner templates, also when others take their place", () => {
    const read = (inner: TemplateValue) => compile(sql`SELECT ${"first"} ${inner} AND ${"last"}`);
    const inners = Array.from({ length: 20 }, (_, n) => {
      const constant = new ConstantSql(`c${n}`);
      return [sql`WHERE ${constant} = ${sql`any(${n})`}`, `WHERE c${n} = any($2)`, String(n)] as const;
    });
    // Twice, forward and back: some are remembered, some no longer.
    for (const [inner, text, value] of [...inners, ...inners.toReversed()]) {
      expect(read(inner)).toMatchObject({
        text: `SELECT $1 ${text} AND $3`,
        values: ["first", value, "last"],
      });
    }
    expect(read("middle")).toMatchObject({ text: "SELECT $1 $2 AND $3", values: ["first", "middle", "last"] });
    expect(read(sql`x`)).toMatchObject({ text: "SELECT $1 x AND $2", values: ["first", "last"] });
    expect(read(sql`y`)).toMatchObject({ text: "SELECT $1 y AND $2", values: ["first", "last"] });
  });

  it("SEC-01 refuses a value that is not there, and an object that is no JSON parameter", () => {
    const loose = (value: unknown) => () => compile(sql`SELECT ${1}, ${value as TemplateValue}`);
    expect(loose(undefined)).toThrow("Parameter $2 is undefined");
    expect(loose({ a: 1 })).toThrow("json()");
    expect(loose([{ a: 1 }])).toThrow("json()");
    expect(loose(new Date(Number.NaN))).toThrow("Invalid time value");
  });
});
