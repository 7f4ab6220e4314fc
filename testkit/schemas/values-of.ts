// Values for a schema: what it accepts, what it just does not accept, and what nobody expects.

import fc from "fast-check";
import type { z } from "zod";
import { anyCharacter } from "./any-character.ts";

type Schema = z.core.$ZodType;

class Odd {
  odd = true;
}

const strange = fc.constantFrom<unknown>(
  ...[undefined, null, true, false, 0, -0, 1, 0.5, -1, 1e308, Number.NaN, Number.POSITIVE_INFINITY, 10n],
  ...[2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), 70_000, 79_999, 80_000],
  ...[
    "",
    " ",
    "a",
    "\0",
    "\ud800",
    "\udc00a",
    "😀",
    " padded\n",
    "__proto__",
    "constructor",
    "0",
    "x".repeat(2001),
  ],
  ...["2026-02-30T00:00:00Z", "2026-01-01T00:00:00.000Z", "00000000-0000-0000-0000-000000000000"],
  ...[[], [undefined], Array(2), {}, new Date(0), new Date(Number.NaN), new Map(), new Odd(), /x/, () => 1],
  ...[
    JSON.parse('{"__proto__":{"a":1}}'),
    Object.create(null),
    Object.create({ inherited: 1 }),
    { constructor: 1 },
  ],
);

export function valuesOf(schema: Schema): fc.Arbitrary<unknown> {
  const near = nearTo(schema);
  return fc.oneof({ weight: 4, arbitrary: near }, { weight: 6, arbitrary: spoiled(near) }, strange);
}

/** Mostly accepted. */
function nearTo(schema: Schema): fc.Arbitrary<unknown> {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "string":
      return textsOf(schema);
    case "number":
      return numbersOf(schema);
    case "boolean":
      return fc.boolean();
    case "enum":
      return fc.constantFrom(...Object.values(def.entries));
    case "literal":
      return fc.constantFrom(...def.values);
    case "array":
      return fc.array(nearTo(def.element), { maxLength: 4 });
    case "tuple":
      return fc.tuple(...def.items.map(nearTo));
    case "object":
      return objectsOf(def.shape);
    case "record":
      return fc.dictionary(
        fc.oneof(textsOf(def.keyType), fc.constantFrom("constructor", "0")),
        nearTo(def.valueType),
        {
          maxKeys: 4,
        },
      );
    case "union":
      return fc.oneof(...def.options.map(nearTo));
    case "nullable":
      return fc.option(nearTo(def.innerType), { nil: null });
    case "optional":
    case "default":
      return fc.option(nearTo(def.innerType), { nil: undefined });
    case "pipe":
      return nearTo(def.out._zod.def.type === "transform" ? def.in : def.out);
    default:
      return strange;
  }
}

type Bounds = {
  minimum?: number;
  maximum?: number;
  pattern?: RegExp;
  value?: number;
  check?: string;
  format?: string;
  inclusive?: boolean;
};

function boundsOf(schema: Schema): Bounds[] {
  const { def } = schema._zod;
  return [def, ...(def.checks ?? []).map((check) => check._zod.def)] as Bounds[];
}

/** So often a single field is as it should be: objects with twenty of them should be accepted now and then. */
const MOSTLY = 40;

function textsOf(schema: Schema): fc.Arbitrary<string> {
  const bounds = boundsOf(schema);
  const edges = bounds.flatMap(({ minimum, maximum }) => [minimum, maximum].filter((size) => size !== undefined));
  const sized = edges.flatMap((size) =>
    ["a", "😀", " "].flatMap((unit) => [-1, 0, 1].map((more) => unit.repeat(Math.max(0, size + more)))),
  );
  const [pattern] = bounds.flatMap((bound) => bound.pattern ?? []);
  const least = Math.max(0, ...bounds.map(({ minimum = 0 }) => minimum));
  const most = Math.min(12, ...bounds.map(({ maximum = 12 }) => maximum));
  const fitting = pattern ? matching(pattern) : fc.string({ minLength: Math.min(least, most), maxLength: most });
  const changed = fc.oneof(
    fitting.map((text) => text.toUpperCase()),
    fitting.map((text) => ` ${text}\n`),
    fc.string({ unit: anyCharacter, maxLength: 12 }),
    ...(sized.length > 0 ? [fc.constantFrom(...sized)] : []),
  );
  return fc.oneof({ weight: MOSTLY, arbitrary: fitting }, { weight: 3, arbitrary: changed });
}

/** fast-check knows no texts for look-arounds, which the pattern of email addresses has. */
function matching(pattern: RegExp): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(pattern);
  } catch {
    return fc.constantFrom("ada@example.org", "Ada@example.org", "ada@", "2026-01-01T00:00:00Z");
  }
}

function numbersOf(schema: Schema): fc.Arbitrary<number> {
  const bounds = boundsOf(schema);
  const limits = (check: string) => bounds.flatMap((bound) => (bound.check === check ? (bound.value ?? []) : []));
  const [lower, upper] = [limits("greater_than"), limits("less_than")];
  const edges = [...lower, ...upper].flatMap((value) => [value - 1, value, value + 1]);
  const min = Math.ceil(Math.max(-1000, ...lower));
  const max = Math.max(min, Math.floor(Math.min(min + 2000, ...upper)));
  const isWhole = bounds.some(({ format }) => format === "safeint");
  const fitting = isWhole
    ? fc.integer({ min, max })
    : fc.oneof(fc.integer({ min, max }), fc.double({ min, max, noNaN: true }));
  const changed = fc.oneof(fc.constantFrom(0, -0, 1, ...edges), fc.integer(), fc.double());
  return fc.oneof({ weight: MOSTLY, arbitrary: fitting }, { weight: 3, arbitrary: changed });
}

function objectsOf(shape: Readonly<Record<string, Schema>>): fc.Arbitrary<unknown> {
  const optional = Object.entries(shape).filter(([, part]) => part._zod.optin !== undefined);
  const required = Object.keys(shape).filter((key) => !optional.some(([name]) => name === key));
  const parts = Object.fromEntries(Object.entries(shape).map(([key, part]) => [key, nearTo(part)]));
  return fc.record(parts, { requiredKeys: required });
}

type Spoil = { at: number; how: "replace" | "remove" | "add"; key: string; by: unknown };

/** Changed in one place. */
function spoiled(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const spoil = fc.record<Spoil>({
    at: fc.nat(200),
    how: fc.constantFrom("replace", "remove", "add"),
    key: fc.constantFrom("more", "__proto__", "constructor", "toString", "0"),
    by: strange,
  });
  return fc.tuple(values, spoil).map(([value, { at, how, key, by }]) => {
    const holder = { value: copied(value) };
    const places = placesIn(holder);
    const place = places[at % places.length];
    if (!place) return value;
    const [owner, name] = place;
    const found = owner[name];
    if (how === "remove" && owner !== holder) delete owner[name];
    else if (how === "add" && isContainer(found))
      Object.defineProperty(found, key, { value: by, enumerable: true, configurable: true, writable: true });
    else owner[name] = by;
    return holder.value;
  });
}

type Container = Record<string, unknown>;

function isContainer(value: unknown): value is Container {
  return Array.isArray(value) || (typeof value === "object" && value !== null && value.constructor === Object);
}

function placesIn(owner: Container): [Container, string][] {
  return Object.keys(owner).flatMap((name): [Container, string][] => {
    const found = owner[name];
    return [[owner, name], ...(isContainer(found) ? placesIn(found) : [])];
  });
}

function copied(value: unknown): unknown {
  if (Array.isArray(value)) return Array.from(value, copied);
  if (!isContainer(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copied(item)]));
}
