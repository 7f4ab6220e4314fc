// Schemas of every kind that a check can be generated from, put together at random.

import fc from "fast-check";
import { z } from "zod";

const text = z.string();
const leaves: z.ZodType[] = [
  text,
  z.string("must be a text"),
  text.min(2).max(3),
  text.min(2, "two at least").max(4),
  text.trim().min(1),
  text.toLowerCase().pipe(z.uuid("not an id")),
  text.regex(/^[a-c]{1,3}$/, "a, b or c"),
  text.regex(/a/g),
  text.lowercase(),
  z.email(),
  z.iso.datetime(),
  z.iso.datetime().refine((time) => !time.startsWith("0000"), "there is no year 0"),
  text.refine((it) => !it.includes("\0"), { error: "no NUL", abort: true }).min(3),
  text.refine((it) => it.isWellFormed()),
  text.overwrite((it) => it.replaceAll("\0", "").toWellFormed()).max(5),
  text.transform((it) => it.length).pipe(z.int().max(3)),
  z.transform((value) => (value === undefined ? "none" : value)),
  z.number(),
  z.number().positive().lt(10),
  z.number().min(-1).max(1, "one at most"),
  z.number().gt(-5).lte(5),
  z.int().nonnegative(),
  z.number().int("whole, please").min(3),
  z.boolean(),
  z.null(),
  z.unknown(),
  z.any(),
  z.enum(["red", "green"]),
  z.enum(["red", "green"], "a colour"),
  z.literal("on"),
  z.literal([1, "1", null, true]),
];

const leaf = fc.constantFrom(...leaves);
const present = fc.constantFrom(...leaves.filter((schema) => schema._zod.optin === undefined));

export const anySchema = fc.letrec<{ schema: z.ZodType }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    tie("schema").map((inner) => inner.nullable()),
    tie("schema").map((inner) => inner.optional()),
    fc
      .tuple(tie("schema"), fc.constantFrom<unknown>(0, "d", null, [], [1], { a: 1 }, -0))
      .map(([inner, made]) => inner.default(made as never)),
    tie("schema").map((inner) => z.array(inner)),
    tie("schema").map((inner) => z.array(inner).min(1).max(3, "three at most")),
    fc
      .array(present, { minLength: 1, maxLength: 3 })
      .map((items) => z.tuple(items as [z.ZodType, ...z.ZodType[]])),
    objectsWith(tie("schema"), (shape) => z.object(shape)),
    objectsWith(tie("schema"), (shape) => z.strictObject(shape)),
    objectsWith(tie("schema"), (shape) => z.strictObject(shape, "not this form")),
    objectsWith(tie("schema"), (shape) => z.looseObject(shape)),
    objectsWith(tie("schema"), (shape) =>
      z.object(shape).refine((it) => Object.keys(it).length > 1, "two fields"),
    ),
    tie("schema").map((inner) => z.record(z.string(), inner)),
    tie("schema").map((inner) =>
      z.record(z.string().max(3), inner).refine((it) => Object.keys(it).length < 3, "two at most"),
    ),
    fc.tuple(tie("schema"), tie("schema")).map(([one, other]) => z.union([one, other])),
    fc.tuple(leaf, tie("schema")).map(([one, other]) => one.pipe(other as never)),
    fc
      .tuple(tie("schema"), tie("schema"))
      .map(([one, other]) =>
        z.discriminatedUnion("kind", [
          z.strictObject({ kind: z.literal("one"), one }),
          z.object({ kind: z.enum(["two", "three"]), other }),
        ]),
      ),
  ),
})).schema;

function objectsWith(
  part: fc.Arbitrary<z.ZodType>,
  make: (shape: Record<string, z.ZodType>) => z.ZodType,
): fc.Arbitrary<z.ZodType> {
  const keys = fc.constantFrom("a", "b", "constructor", "toString", "with space", "0");
  return fc.dictionary(keys, part, { maxKeys: 4, noNullPrototype: true }).map(make);
}
