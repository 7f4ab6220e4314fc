import { describe, expect, it } from "vitest";
import { z } from "zod";
import { allEndpoints } from "./endpoints/all.ts";
import { serviceEndpoints } from "./internal/endpoints.ts";
import { nodeApiEndpoints } from "./node/endpoints.ts";

/** As long as one of the contracts may want it. */
const probes = [1, 3, 12, 20, 36, 43, 64].flatMap((length) =>
  ["a\0", "a\ud800"].map((start) => start.padEnd(length, "a").slice(-Math.max(length, 2))),
);
const isUnstorable = (value: unknown) =>
  typeof value === "string" && (value.includes("\0") || !value.isWellFormed());

type Def = { type: string } & Record<string, unknown>;
const defOf = (schema: z.ZodType) => schema._zod.def as unknown as Def;

/** What a schema is made of; a `z.unknown()` holds nothing that it checks. */
function partsOf(schema: z.ZodType): [string, z.ZodType][] {
  const def = defOf(schema);
  if (def.type === "object") return Object.entries((schema as z.ZodObject).shape as Record<string, z.ZodType>);
  const named = ["innerType", "element", "in", "out", "keyType", "valueType"].flatMap((name) =>
    def[name] ? [[name, def[name] as z.ZodType] as [string, z.ZodType]] : [],
  );
  const options = (def["options"] ?? def["items"] ?? []) as z.ZodType[];
  return [...named, ...options.map((option, index) => [String(index), option] as [string, z.ZodType])];
}

/** Where a NUL, or half of a surrogate pair, would get through. */
function letThrough(schema: z.ZodType, path: string): string[] {
  const { type } = defOf(schema);
  const reads = probes.map((probe) => schema.safeParse(probe));
  const isText =
    type === "string" || (type === "pipe" && defOf(defOf(schema)["in"] as z.ZodType).type === "string");
  if (isText) return reads.some((read) => read.success && isUnstorable(read.data)) ? [path] : [];
  return partsOf(schema).flatMap(([name, part]) => letThrough(part, `${path}.${name}`));
}

describe("the text of requests", () => {
  it.for([...allEndpoints, ...nodeApiEndpoints, ...serviceEndpoints].map((one) => [one.name, one] as const))(
    "SEC-03 holds nothing that the database cannot store: %s",
    ([, { params, query, body }]) => {
      const found = Object.entries({ params, query, body }).flatMap(([where, schema]) =>
        schema ? letThrough(schema, where) : [],
      );
      expect(found).toEqual([]);
    },
  );

  it("SEC-03 is looked at to its leaves: a text that takes a NUL is found wherever it stands", () => {
    const text = z.string().max(64);
    const hidden = z.strictObject({
      list: z.array(z.union([z.int(), z.strictObject({ name: text.nullable() })])).optional(),
      map: z.record(text, z.number()).default({}),
    });
    expect(letThrough(hidden, "body")).toEqual([
      "body.list.innerType.element.1.name.innerType",
      "body.map.innerType.keyType",
    ]);
  });
});
