// Writes the check of a schema, from what the schema library keeps of it. Whatever is not known here stops the
// generation: a part left out would let through what the schema refuses.

import { z } from "zod";
import { closedSource } from "./closed-function.ts";
import { type Code, call, fields, flat, list, literal } from "./code.ts";

export class NotGeneratable extends Error {
  override name = "NotGeneratable";
}

type Schema = z.core.$ZodType;
type Definition = z.core.$ZodTypes["_zod"]["def"];
type Step = z.core.$ZodChecks["_zod"]["def"];

/** `where` is for messages, such as `tasks/node.noop/contract.ts: params.echo`. */
export function checkOf(schema: Schema, where: string): Code {
  const { def, traits } = (schema as z.core.$ZodTypes)._zod;
  const message = ownMessage(def, where);
  const steps: Step[] = (def.checks ?? []).map((check) => (check as z.core.$ZodChecks)._zod.def);
  // Of a form such as `z.uuid()`, which is a type and a check at once.
  if (traits.has("$ZodCheck")) steps.unshift(def as unknown as Step);
  const owner = { origin: def.type, message, where };
  const limits = def.type === "array" ? takeLimits(steps) : [];
  const base =
    def.type === "array"
      ? arrayOf(
          def,
          limits.map((step) => limitOf(step, owner)),
          owner,
        )
      : baseOf(def, message, where);
  return steps.length === 0 ? base : call("check.chain", base, ...steps.map((step) => stepOf(step, owner)));
}

/** Upper limits of an array that come before anything else: they are looked at before its elements. */
function takeLimits(steps: Step[]): z.core.$ZodCheckMaxLengthDef[] {
  const others = steps.findIndex(({ check }) => check !== "min_length" && check !== "max_length");
  const leading = others === -1 ? steps : steps.slice(0, others);
  const limits = leading.filter((step) => step.check === "max_length");
  for (const limit of limits) steps.splice(steps.indexOf(limit), 1);
  return limits;
}

function limitOf({ maximum, error }: z.core.$ZodCheckMaxLengthDef, { origin, message, where }: Owner): Code {
  const issue = { origin: origin as never, inclusive: true, input: undefined, code: "too_big" as const, maximum };
  return list([`${maximum}`, JSON.stringify(ownMessage({ error }, where) ?? message ?? standardMessage(issue))]);
}

function arrayOf(def: z.core.$ZodArrayDef, limits: Code[], { message, where }: Owner): Code {
  const said = message === undefined ? undefined : JSON.stringify(message);
  const before = limits.length > 0 || said !== undefined ? list(limits) : undefined;
  return call("check.array", checkOf(def.element, `${where}[]`), before, said);
}

type Owner = { origin: string; message: string | undefined; where: string };

function baseOf(def: Definition, message: string | undefined, where: string): Code {
  const said = message === undefined ? undefined : JSON.stringify(message);
  if ("coerce" in def && def.coerce) throw unknown("z.coerce", where);
  switch (def.type) {
    case "string":
      return call("check.string", said);
    case "number":
      return call("check.number", said);
    case "boolean":
      return call("check.boolean", said);
    case "null":
      return call("check.isNull", said);
    case "unknown":
    case "any":
      return call("check.unknown");
    case "enum":
      return oneOf(Object.values(def.entries), message, where);
    case "literal":
      return oneOf(def.values, message, where);
    case "tuple":
      return tupleOf(def, said, where);
    case "object":
      return objectOf(def, said, where);
    case "record":
      return recordOf(def, said, where);
    case "union":
      return unionOf(def, message, where);
    case "nullable":
      return call("check.nullable", checkOf(def.innerType, where));
    case "optional":
      return call("check.optional", checkOf(def.innerType, where));
    case "default":
      return call("check.defaulted", checkOf(def.innerType, where), thunk(def.defaultValue, where));
    case "pipe":
      if ("transform" in def && def.transform) throw unknown("z.codec", where);
      return pipeOf(def, where);
    case "transform":
      return call("check.transform", functionOf(def.transform, where));
    default:
      throw unknown(`z.${def.type}`, where);
  }
}

function objectOf(def: z.core.$ZodObjectDef, said: string | undefined, where: string): Code {
  const others = def.catchall?._zod.def.type;
  const kinds: Record<string, string> = { never: "strictObject", unknown: "looseObject" };
  const kind = others === undefined ? "object" : kinds[others];
  if (kind === undefined || Object.getOwnPropertySymbols(def.shape).length > 0)
    throw unknown("a catchall, or a symbol as a key,", where);
  if (Object.hasOwn(def.shape, "__proto__")) throw unknown("a field __proto__", where);
  const parts = Object.entries(def.shape).map(([key, part]) => [key, checkOf(part, `${where}.${key}`)] as const);
  return call(`check.${kind}`, fields(parts), said);
}

function tupleOf(def: z.core.$ZodTupleDef, said: string | undefined, where: string): Code {
  if (def.rest || def.items.some((item) => item._zod.optin !== undefined || item._zod.optout !== undefined))
    throw unknown("a tuple of varying length", where);
  const size = { origin: "array" as const, inclusive: true, input: [] };
  const tooShort = standardMessage({ ...size, code: "too_small", minimum: def.items.length });
  const tooLong = standardMessage({ ...size, code: "too_big", maximum: def.items.length });
  const items = def.items.map((item, index) => checkOf(item, `${where}[${index}]`));
  return call("check.tuple", list(items), JSON.stringify(tooShort), JSON.stringify(tooLong), said);
}

function recordOf(def: z.core.$ZodRecordDef, said: string | undefined, where: string): Code {
  const { keyType, valueType } = def;
  if ((keyType as Schema)._zod.def.type !== "string") throw unknown("a record whose keys are not texts", where);
  if ("mode" in def && def.mode === "loose") throw unknown("a loose record", where);
  const badKey = standardMessage({ code: "invalid_key", origin: "record", issues: [], input: "" });
  const own = said ?? JSON.stringify(badKey);
  return call("check.record", checkOf(keyType, `${where} keys`), checkOf(valueType, `${where}.*`), own, said);
}

function pipeOf(def: z.core.$ZodPipeDef, where: string): Code {
  const [from, to] = [checkOf(def.in, where), checkOf(def.out, where)];
  // The library lets unknown keys through the pipe, and a union behind it forgets them.
  if (flat(from).includes("check.strictObject(") && def.out._zod.def.type !== "transform")
    throw unknown("a pipe out of a strict object", where);
  return call("check.pipe", from, to);
}

function unionOf(def: z.core.$ZodUnionDef, message: string | undefined, where: string): Code {
  const parts = def.options.map((option, index) => checkOf(option, `${where} option ${index + 1}`));
  if (!("discriminator" in def)) {
    if (def.inclusive === false) throw unknown("z.xor", where);
    const said = message ?? standardMessage({ code: "invalid_union", errors: [], input: {} });
    const [only] = parts;
    return only && parts.length === 1 ? only : call("check.union", list(parts), JSON.stringify(said));
  }
  const field = String(def.discriminator);
  if (message !== undefined || ("unionFallback" in def && def.unionFallback))
    throw unknown("a discriminated union with a message or a fallback", where);
  const values = def.options.map((option, index) => {
    const found = [...(option._zod.propValues?.[field] ?? [])];
    if (option._zod.def.type !== "object" || found.length === 0 || found.includes(undefined))
      throw unknown(`option ${index + 1} of a discriminated union`, where);
    return found;
  });
  const options = values.flat() as string[];
  const said = standardMessage({ code: "invalid_union", errors: [], input: {}, options } as never);
  const pairs = parts.map((part, index) => list([plain(values[index], where), part]));
  return call("check.variants", JSON.stringify(field), list(pairs), JSON.stringify(said));
}

function oneOf(values: readonly z.core.util.Literal[], message: string | undefined, where: string): Code {
  const said = message ?? standardMessage({ code: "invalid_value", values: [...values], input: undefined });
  return call("check.oneOf", plain(values, where), JSON.stringify(said));
}

function stepOf(step: Step, owner: Owner): Code {
  const { origin, where } = owner;
  const about = { origin: origin as never, inclusive: true, input: undefined };
  const fatal = step.abort ? "true" : undefined;
  const custom = ownMessage(step, where) ?? owner.message;
  const said = (issue: Issue) => JSON.stringify(custom ?? standardMessage(issue));
  switch (step.check) {
    case "less_than":
    case "greater_than": {
      const isUpper = step.check === "less_than";
      const name = step.inclusive ? (isUpper ? "max" : "min") : isUpper ? "below" : "above";
      if (typeof step.value !== "number") throw unknown("a bound that is not a number", where);
      const [minimum, maximum] = [step.value, step.value];
      const issue = { ...about, inclusive: step.inclusive };
      const text = said(
        isUpper ? { ...issue, code: "too_big", maximum } : { ...issue, code: "too_small", minimum },
      );
      return call(`check.${name}`, plain(step.value, where), text, fatal);
    }
    case "min_length":
      return call(
        "check.minLength",
        `${step.minimum}`,
        said({ ...about, code: "too_small", minimum: step.minimum }),
        fatal,
      );
    case "max_length":
      return call(
        "check.maxLength",
        `${step.maximum}`,
        said({ ...about, code: "too_big", maximum: step.maximum }),
        fatal,
      );
    case "number_format":
      if (step.format !== "safeint") throw unknown(`the number format ${step.format}`, where);
      return call("check.integer", custom === undefined ? fatal && "undefined" : JSON.stringify(custom), fatal);
    case "string_format": {
      const { format, pattern } = step;
      if (!byPattern.has(format) || !pattern) throw unknown(`the text format ${format}`, where);
      const issue = { code: "invalid_format" as const, format, pattern: String(pattern), input: "" };
      return call("check.pattern", String(pattern), said(issue), fatal);
    }
    case "overwrite":
      return call("check.overwrite", functionOf(step.tx, where));
    default:
      return refinementOf(step, { ...owner, custom, fatal });
  }
}

/** Formats that are their pattern and nothing else. */
const byPattern = new Set([
  ...["regex", "uuid", "guid", "email", "datetime", "date", "time", "duration"],
  ...["ipv4", "ulid", "nanoid", "lowercase", "uppercase"],
]);

type Refinement = { custom: string | undefined; fatal: string | undefined; where: string };

function refinementOf(step: Step | z.core.$ZodCustomDef, { custom, fatal, where }: Refinement): Code {
  // `superRefine` and `check` leave no function here.
  if (step.check !== "custom" || !("fn" in step) || step.fn === undefined)
    throw unknown(`the check ${step.check}`, where);
  const { when, path, params } = step as z.core.$ZodCustomDef;
  if (when !== undefined || (path?.length ?? 0) > 0 || params !== undefined)
    throw unknown("a refinement with `when`, `path` or `params`", where);
  const said = custom ?? standardMessage({ code: "custom", input: undefined });
  return call("check.refine", functionOf(step.fn, where), JSON.stringify(said), fatal);
}

type Issue = z.core.$ZodRawIssue;

function ownMessage(def: { error?: unknown }, where: string): string | undefined {
  if (def.error === undefined) return undefined;
  const error = def.error as (issue: unknown) => string | { message: string } | undefined | null;
  if (error.length > 0) throw unknown("a message that depends on the value", where);
  const made = error({});
  return typeof made === "string" ? made : made?.message;
}

function standardMessage(issue: Issue): string {
  const made = z.config().localeError?.(issue);
  return (typeof made === "string" ? made : made?.message) ?? "Invalid input";
}

function functionOf(written: unknown, where: string): Code {
  const read = closedSource(written);
  if ("problem" in read) throw new NotGeneratable(`${where}: a function ${read.problem}; a check cannot have it.`);
  if ((written as () => void).length > 1) throw unknown("a function of more than the value", where);
  return read.source;
}

function plain(value: unknown, where: string): Code {
  const code = literal(value);
  if (code === undefined) throw unknown("a value that JSON does not have", where);
  return code;
}

/** Made anew each time: it may be changed by whoever gets it. */
function thunk(value: unknown, where: string): Code {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return { open: isObject ? "() => (" : "() => ", items: [["", plain(value, where)]], close: isObject ? ")" : "" };
}

function unknown(feature: string, where: string): NotGeneratable {
  return new NotGeneratable(
    `${where}: ${feature} has no check for agents. Use another form, or add it to scripts/agent-checks/ and kit/src/checks.ts.`,
  );
}
