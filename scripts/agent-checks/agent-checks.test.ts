// A check must be its schema without the library: it accepts and refuses the same values, returns the same, and says the
// same about what is wrong first.

import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import * as check from "@holdfast/kit/checks";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { loadCheckedType, loadContract, taskTypeNames } from "../../tasks/registry.ts";
import { anySchema } from "../../testkit/schemas/any-schema.ts";
import { valuesOf } from "../../testkit/schemas/values-of.ts";
import { checkOf, NotGeneratable } from "./check-of.ts";
import { call, shareRepeated } from "./code.ts";
import { contractModule } from "./modules.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

function generate(schema: z.ZodType): check.Check {
  const code = call("check.of", checkOf(schema, "test"));
  const { declarations, print } = shareRepeated([code]);
  return new Function("check", `${declarations}return ${print(code)};`)(check) as check.Check;
}

/** With everything that two values can differ in: order and absence of keys, -0, prototypes, halves of characters. */
const whole = (value: unknown) =>
  inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null, showHidden: true });

/** What a union says when no option fits depends on how far each of them got; there only the verdict is compared. */
function comparer(schema: z.ZodType, generated: check.Check): (value: unknown) => void {
  const code = checkOf(schema, "test");
  const isSaidTheSame = !shareRepeated([code]).print(code).includes("check.union(");
  return (value) => {
    const wanted = outcome(() => schema.safeParse(value));
    const found = outcome(() => generated.safeParse(value));
    const about = whole(value);
    expect(found?.success, about).toBe(wanted?.success);
    if (wanted?.success && found?.success) expect(whole(found.data), about).toBe(whole(wanted.data));
    if (wanted?.success !== false || found?.success !== false || !isSaidTheSame) return;
    const said = textOf((wanted.error as z.ZodError).issues[0]);
    expect(found.error.message.slice(0, said.length), about).toBe(said);
  };
}

function textOf(issue: z.core.$ZodIssue | undefined): string {
  const place =
    issue?.path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("") ?? "";
  return place === "" ? `${issue?.message}` : `${place.replace(/^[.]/, "")}: ${issue?.message}`;
}

/** Undefined: a function that the schema was given does not take such a value. */
function outcome<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

type Pair = { name: string; schema: z.ZodType; generated: check.Check };

async function pairs(): Promise<Pair[]> {
  const found: Pair[] = [];
  for (const type of taskTypeNames()) {
    const [contract, checked] = [await loadContract(type), await loadCheckedType(type)];
    for (const name of ["params", "progress", "result"] as const) {
      if (contract && checked)
        found.push({ name: `${name} of ${type}`, schema: contract[name], generated: checked[name] });
    }
  }
  for (const path of globSync("{tasks,node-agent/src}/**/*.schema.ts", { cwd: root })) {
    const schemas = (await import(`${root}${path}`)) as Record<string, z.ZodType>;
    const checks = (await import(`${root}${path.replace(".schema.", ".generated.")}`)) as Record<
      string,
      check.Check
    >;
    for (const [name, schema] of Object.entries(schemas)) {
      const generated = checks[name];
      if (!generated) throw new Error(`there is no check of ${name} in ${path}`);
      found.push({ name: `${name} in ${path}`, schema, generated });
    }
  }
  return found;
}

const all = await pairs();

describe("the checks of the agent", () => {
  it("TASK-07 are there for every schema it needs", () => {
    expect(all.length).toBeGreaterThanOrEqual(3 * taskTypeNames().length + 2);
  });

  it.for(all)("TASK-07 do as the schema does: $name", ({ schema, generated }) => {
    const compare = comparer(schema, generated);
    const verdicts = new Set<boolean>();
    const property = fc.property(valuesOf(schema), (value) => {
      compare(value);
      verdicts.add(schema.safeParse(value).success);
    });
    fc.assert(property, { numRuns: 500 });
    expect(verdicts, "some are accepted and some are not").toEqual(new Set([true, false]));
  });

  it("TASK-07 have all else that a contract declares, but not what only the server asks for", async () => {
    for (const type of taskTypeNames()) {
      const {
        params: _1,
        progress: _2,
        result: _3,
        orderKey: _4,
        ...declared
      } = { ...(await loadContract(type)) };
      expect(await loadCheckedType(type)).toMatchObject(declared);
      expect(await loadCheckedType(type)).not.toHaveProperty("orderKey");
    }
  });
});

describe("a generated check", () => {
  it("TASK-07 does as its schema does, whatever schema that is", () => {
    const schemaAndValues = anySchema.chain((schema) =>
      fc.tuple(fc.constant(schema), fc.array(valuesOf(schema), { minLength: 8, maxLength: 12 })),
    );
    fc.assert(
      fc.property(schemaAndValues, ([schema, values]) => {
        const compare = comparer(schema, generate(schema));
        for (const value of values) compare(value);
      }),
      { numRuns: 150 },
    );
  });

  it("TASK-07 says in one line where what is wrong", () => {
    const form = z.strictObject({ hops: z.array(z.strictObject({ ms: z.number() })), ok: z.boolean() });
    const checked = generate(form).safeParse({ hops: [{ ms: "1" }], ok: true, more: 1 });
    expect(checked).toMatchObject({
      success: false,
      error: {
        name: "CheckFailed",
        message: 'hops[0].ms: Invalid input: expected number, received string; Unrecognized key: "more"',
      },
    });
    expect(() => generate(form).parse(1)).toThrow("Invalid input: expected object, received number");
  });

  it("TASK-07 does not wait for promises, and does not take one for a yes", () => {
    const sneaky = z.string().refine((text) => text === "" || (async () => false)());
    expect(() => generate(sneaky).safeParse("x")).toThrow("promise");
  });

  it("TASK-07 makes no prototype of a key, also of one that only becomes that name", () => {
    const schema = z.record(z.string().trim(), z.unknown());
    const generated = generate(schema);
    const compare = comparer(schema, generated);
    for (const value of [{ " __proto__": { a: 1 } }, JSON.parse('{"__proto__":{"a":1}}'), { " b": 1 }]) {
      compare(value);
      expect(generated.parse(value)).not.toHaveProperty("a");
    }
  });

  it("TASK-07 gives every value a default of its own", () => {
    const generated = generate(z.array(z.string()).default([]));
    expect(generated.parse(undefined)).not.toBe(generated.parse(undefined));
  });
});

describe("a schema without a check", () => {
  const limit = 3;
  const inside = (schema: z.ZodType) => z.strictObject({ list: z.array(schema) });
  it.for<[string, z.ZodType]>([
    ["a bigint", z.bigint()],
    ["a date", z.date()],
    ["undefined", z.undefined()],
    ["a URL", z.url()],
    ["an IPv6 address", z.ipv6()],
    ["base64", z.base64()],
    ["a JWT", z.jwt()],
    ["a 32-bit integer", z.int32()],
    ["a multiple", z.number().multipleOf(5)],
    ["a prefix", z.string().startsWith("a")],
    ["an exact length", z.string().length(3)],
    ["coercion", z.coerce.number()],
    ["coercion of texts", z.coerce.string()],
    ["a map", z.map(z.string(), z.string())],
    ["a set", z.set(z.string())],
    ["a lazy schema", z.lazy(() => z.string())],
    ["an intersection", z.string().and(z.string())],
    ["an exclusive union", z.xor([z.string(), z.number()])],
    ["a fallback", z.string().catch("x")],
    ["a default that is read", z.string().prefault("x")],
    ["readonly", z.array(z.string()).readonly()],
    ["nonoptional", z.string().optional().nonoptional()],
    ["a preprocessed value", z.preprocess((value, ctx) => (ctx.issues.length > 0 ? 1 : value), z.string())],
    ["a codec", z.codec(z.string(), z.number(), { decode: (it) => it.length, encode: (it) => `${it}` })],
    ["a pipe out of a strict object", z.strictObject({}).pipe(z.union([z.unknown()]) as never)],
    ["a template", z.templateLiteral(["a", z.number()])],
    ["a catchall", z.object({}).catchall(z.string())],
    ["a record of certain keys", z.record(z.enum(["a", "b"]), z.string())],
    ["a tuple with a rest", z.tuple([z.string()], z.string())],
    ["a tuple with an end that may be missing", z.tuple([z.string().optional()])],
    ["a custom type", z.custom<string>((value) => typeof value === "string")],
    ["an instance", z.instanceof(Date)],
    ["a promise", z.promise(z.string())],
    ["superRefine", z.string().superRefine(() => {})],
    ["check", z.string().check(() => {})],
    ["a refinement that uses a variable", z.string().refine((text) => text.length < limit)],
    ["a transformation that uses an import", z.string().transform((text) => inspect(text))],
    ["a transformation that adds issues", z.string().transform((text, ctx) => ctx.addIssue(text))],
    ["an asynchronous refinement", z.string().refine(async () => true)],
    ["a built-in function", z.number().refine(Number.isInteger)],
    ["a refinement of a field", z.object({}).refine((it) => it, { path: ["a"] })],
    ["a refinement under a condition", z.string().refine((it) => it, { when: () => true })],
    ["a normalization", z.string().normalize("NFC")],
    ["a message that depends on the value", z.string({ error: (issue) => `not ${issue.input}` })],
    ["a literal that JSON does not have", z.literal(1n)],
    ["a default that JSON does not have", z.unknown().default(() => new Date(0))],
    ["a field called __proto__", z.object(JSON.parse("{}")).extend({ ["__proto__"]: z.string() })],
  ])("TASK-07 stops the generation, and its place is named: %s", ([, schema]) => {
    const write = () => checkOf(inside(schema), "tasks/x/contract.ts: params");
    expect(write).toThrow(NotGeneratable);
    expect(write).toThrow("tasks/x/contract.ts: params.list[]");
  });

  it("TASK-07 stops the generation where a declaration is not plain data", async () => {
    const [type = ""] = taskTypeNames();
    const contract = await loadContract(type);
    const odd = { ...contract, timeoutSeconds: () => 1 } as never;
    expect(() => contractModule(odd)).toThrow("timeoutSeconds is not plain data");
  });
});
