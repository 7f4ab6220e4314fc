// What generated checks are composed of. An agent has no schema library: `npm run generate` writes, beside each schema
// that it needs, a check that accepts, returns and reports the same (ADR 35). Nobody composes checks by hand.

export type Check<T = unknown> = {
  /** Throws a CheckFailed. */
  parse(value: unknown): T;
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: Error };
};

class CheckFailed extends Error {
  override name = "CheckFailed";
}

// biome-ignore lint/suspicious/noExplicitAny: values are anything until they are checked
type Any = any;
type Issue = {
  path: PropertyKey[];
  message: string /** What comes after it on the same value is not tried. */;
  fatal: boolean;
};
/** Returns what becomes of the value, and adds what is wrong with it. */
type Run = (value: Any, issues: Issue[]) => unknown;
export type Part = {
  run: Run;
  /** As a field: whether it may be absent, and whether something takes its place then. */
  absent?: "optional" | "defaulted";
  /** As a field: whether it may be absent from what is returned. */
  mayBeLeftOut?: boolean;
};

export function of(part: Part): Check<Any> {
  const safeParse = (value: unknown): ReturnType<Check<Any>["safeParse"]> => {
    const issues: Issue[] = [];
    const data = part.run(value, issues);
    return issues.length === 0
      ? { success: true, data }
      : { success: false, error: new CheckFailed(textOf(issues)) };
  };
  const parse = (value: unknown) => {
    const checked = safeParse(value);
    if (checked.success) return checked.data;
    throw checked.error;
  };
  return { parse, safeParse };
}

/** One line, such as `hops[0].ms: Invalid input: expected number, received string; …` */
function textOf(issues: readonly Issue[]): string {
  return issues
    .map(({ path, message }) => {
      const place = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
      return place === "" ? message : `${place.replace(/^[.]/, "")}: ${message}`;
    })
    .join("; ");
}

function add(issues: Issue[], message: string, fatal = true): void {
  issues.push({ path: [], message, fatal });
}

/** Says of everything added from `first` on where it was. */
function place(issues: Issue[], first: number, key: PropertyKey): void {
  for (let index = first; index < issues.length; index += 1) issues[index]?.path.unshift(key);
}

function hasFatal(issues: readonly Issue[], first: number): boolean {
  return issues.length > first && issues.slice(first).some(({ fatal }) => fatal);
}

function expected(type: string, value: unknown): string {
  return `Invalid input: expected ${type}, received ${kindOf(value)}`;
}

function kindOf(value: Any): string {
  if (typeof value === "number") return Number.isFinite(value) ? "number" : String(value);
  if (typeof value !== "object") return typeof value;
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const isPlain = Object.getPrototypeOf(value) === Object.prototype || !("constructor" in value);
  return isPlain || !value.constructor ? "object" : value.constructor.name;
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

function typed(type: string, is: (value: Any) => boolean, message?: string): Part {
  return {
    run: (value, issues) => {
      if (!is(value)) add(issues, message ?? expected(type, value));
      return value;
    },
  };
}

export const string = (message?: string) => typed("string", (value) => typeof value === "string", message);
export const number = (message?: string) => typed("number", Number.isFinite, message);
export const boolean = (message?: string) => typed("boolean", (value) => typeof value === "boolean", message);
export const isNull = (message?: string) => typed("null", (value) => value === null, message);
export const unknown = (): Part => ({ run: (value) => value });

export function oneOf(values: readonly unknown[], message: string): Part {
  const allowed = new Set(values);
  return typed("", (value) => allowed.has(value), message);
}

/** The part, and then one step after the other on what it returned. */
export function chain(part: Part, ...steps: Run[]): Part {
  return {
    ...part,
    run: (input, issues) => {
      let first = issues.length;
      let value: unknown = part.run(input, issues);
      for (const step of steps) {
        if (hasFatal(issues, first)) break;
        first = issues.length;
        value = step(value, issues);
      }
      return value;
    },
  };
}

export function refine(holds: (value: Any) => unknown, message: string, fatal = false): Run {
  return (value, issues) => {
    if (!settled(holds(value))) add(issues, message, fatal);
    return value;
  };
}

export function overwrite(change: (value: Any) => unknown): Run {
  return (value) => change(value);
}

function settled(value: unknown): unknown {
  if (value instanceof Promise) throw new Error("a check cannot wait for a promise");
  return value;
}

export function pattern(regex: RegExp, message: string, fatal?: boolean): Run {
  const matches = (text: string) => {
    regex.lastIndex = 0;
    return regex.test(text);
  };
  return refine(matches, message, fatal);
}

export const min = (least: number, message: string, fatal?: boolean) => refine((n) => n >= least, message, fatal);
export const max = (most: number, message: string, fatal?: boolean) => refine((n) => n <= most, message, fatal);
export const above = (limit: number, message: string, fatal?: boolean) => refine((n) => n > limit, message, fatal);
export const below = (limit: number, message: string, fatal?: boolean) => refine((n) => n < limit, message, fatal);

export function integer(message?: string, fatal = false): Run {
  return (value, issues) => {
    if (!Number.isInteger(value)) add(issues, message ?? expected("int", value));
    else if (value > Number.MAX_SAFE_INTEGER)
      add(issues, message ?? `Too big: expected int to be <=${Number.MAX_SAFE_INTEGER}`, fatal);
    else if (value < Number.MIN_SAFE_INTEGER)
      add(issues, message ?? `Too small: expected int to be >=${Number.MIN_SAFE_INTEGER}`, fatal);
    return value;
  };
}

/** Of a text in characters, not in halves of surrogate pairs. */
function lengthOf(value: string | readonly unknown[]): number {
  if (typeof value !== "string") return value.length;
  return value.length - (value.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

export const minLength = (least: number, message: string, fatal?: boolean) =>
  refine((value) => lengthOf(value) >= least, message, fatal);
export const maxLength = (most: number, message: string, fatal?: boolean) =>
  refine((value) => value.length <= most || lengthOf(value) <= most, message, fatal);

/** One that is longer than a limit is refused before its elements are looked at. */
export function array(
  element: Part,
  limits: readonly (readonly [most: number, message: string])[] = [],
  message?: string,
): Part {
  return {
    run: (input, issues) => {
      const tooLong = Array.isArray(input) ? limits.find(([most]) => input.length > most) : undefined;
      if (!Array.isArray(input)) add(issues, message ?? expected("array", input));
      else if (tooLong) add(issues, tooLong[1]);
      if (!Array.isArray(input) || tooLong) return input;
      const output: unknown[] = Array(input.length);
      for (let index = 0; index < input.length; index += 1) {
        const first = issues.length;
        output[index] = element.run(input[index], issues);
        place(issues, first, index);
      }
      return output;
    },
  };
}

export function tuple(items: readonly Part[], tooShort: string, tooLong: string, message?: string): Part {
  return {
    run: (input, issues) => {
      if (!Array.isArray(input)) add(issues, message ?? expected("tuple", input));
      else if (input.length < items.length) add(issues, message ?? tooShort);
      else if (input.length > items.length) add(issues, message ?? tooLong);
      if (!Array.isArray(input) || input.length < items.length) return input;
      return items.map((item, index) => {
        const first = issues.length;
        const value = item.run(input[index], issues);
        place(issues, first, index);
        return value;
      });
    },
  };
}

type Fields = Record<string, Part>;

/** Whatever it has no field for is left out. */
export const object = (fields: Fields, message?: string) => objectOf(fields, "strip", message);
export const strictObject = (fields: Fields, message?: string) => objectOf(fields, "refuse", message);
export const looseObject = (fields: Fields, message?: string) => objectOf(fields, "keep", message);

function objectOf(fields: Fields, others: "strip" | "refuse" | "keep", message?: string): Part {
  const entries = Object.entries(fields);
  return {
    run: (input, issues) => {
      if (!isObject(input)) {
        add(issues, message ?? expected("object", input));
        return input;
      }
      const output: Record<string, unknown> = {};
      for (const [key, part] of entries) readField(key, part, input, output, issues);
      if (others === "strip") return output;
      const unknownKeys: string[] = [];
      for (const key in input) {
        if (Object.hasOwn(fields, key)) continue;
        if (others === "refuse") unknownKeys.push(key);
        else if (key !== "__proto__") output[key] = input[key];
      }
      if (unknownKeys.length > 0) add(issues, message ?? unrecognized(unknownKeys), false);
      return output;
    },
  };
}

function unrecognized(keys: readonly string[]): string {
  return `Unrecognized key${keys.length > 1 ? "s" : ""}: ${keys.map((key) => `"${key}"`).join(", ")}`;
}

function readField(key: string, part: Part, input: Any, output: Record<string, unknown>, issues: Issue[]): void {
  const isPresent = key in input;
  const { absent, mayBeLeftOut } = part;
  const first = issues.length;
  const value = part.run(input[key], issues);
  if (!isPresent && absent !== undefined && mayBeLeftOut) {
    const isMade = absent === "defaulted" && issues.length === first && value !== undefined;
    issues.length = first;
    if (isMade) output[key] = value;
    return;
  }
  if (!isPresent && absent === undefined && issues.length === first)
    add(issues, expected("nonoptional", undefined));
  place(issues, first, key);
  if (isPresent || absent === "defaulted" || (absent === "optional" && value !== undefined)) output[key] = value;
}

/** Keys are texts. */
export function record(keys: Part, values: Part, badKey: string, message?: string): Part {
  return {
    run: (input, issues) => {
      if (!isRecord(input)) {
        add(issues, message ?? expected("record", input));
        return input;
      }
      const output: Record<PropertyKey, unknown> = {};
      for (const key of Reflect.ownKeys(input)) {
        if (key === "__proto__" || !Object.prototype.propertyIsEnumerable.call(input, key)) continue;
        const first = issues.length;
        const keyIssues: Issue[] = [];
        const outputKey = keys.run(key, keyIssues) as PropertyKey;
        if (keyIssues.length > 0) add(issues, badKey);
        else if (outputKey !== "__proto__") output[outputKey] = values.run(input[key], issues);
        place(issues, first, key);
      }
      return output;
    },
  };
}

function isRecord(value: Any): boolean {
  if (!isObject(value)) return false;
  if (typeof value.constructor !== "function") return true;
  return isObject(value.constructor.prototype) && Object.hasOwn(value.constructor.prototype, "isPrototypeOf");
}

export function union(options: readonly Part[], message: string): Part {
  const some = (absent: Part["absent"]) =>
    options.some((option) => option.absent === absent) ? absent : undefined;
  return {
    absent: some("defaulted") ?? some("optional"),
    mayBeLeftOut: options.some((option) => option.mayBeLeftOut),
    run: (input, issues) => {
      const nearly: Issue[][] = [];
      for (const option of options) {
        const own: Issue[] = [];
        const value = option.run(input, own);
        if (own.length === 0) return value;
        if (!hasFatal(own, 0)) nearly.push(own);
      }
      if (nearly.length === 1) issues.push(...(nearly[0] ?? []));
      else add(issues, message);
      return input;
    },
  };
}

/** By the value of one field. */
export function variants(field: string, options: readonly (readonly [unknown[], Part])[], message: string): Part {
  const byValue = new Map(options.flatMap(([values, part]) => values.map((value) => [value, part] as const)));
  return {
    run: (input, issues) => {
      const option = isObject(input) ? byValue.get(input[field]) : undefined;
      if (option) return option.run(input, issues);
      const first = issues.length;
      add(issues, isObject(input) ? message : expected("object", input));
      if (isObject(input)) place(issues, first, field);
      return input;
    },
  };
}

export function nullable(part: Part): Part {
  return { ...part, run: (value, issues) => (value === null ? null : part.run(value, issues)) };
}

export function optional(part: Part): Part {
  const { absent, run } = part;
  return {
    absent: absent === "defaulted" ? absent : "optional",
    mayBeLeftOut: true,
    run: (value, issues) => {
      if (value !== undefined) return run(value, issues);
      if (absent !== "defaulted") return undefined;
      const own: Issue[] = [];
      const made = run(value, own);
      return own.length === 0 ? made : undefined;
    },
  };
}

export function defaulted(part: Part, make: () => unknown): Part {
  return {
    absent: "defaulted",
    run: (value, issues) => {
      const read = value === undefined ? undefined : part.run(value, issues);
      return read === undefined ? make() : read;
    },
  };
}

export function pipe(from: Part, to: Part): Part {
  return {
    absent: from.absent,
    mayBeLeftOut: to.mayBeLeftOut,
    run: (input, issues) => {
      const first = issues.length;
      const value = from.run(input, issues);
      if (issues.length === first) return to.run(value, issues);
      // Whatever else is to be done with the value would get what did not go through.
      for (const issue of issues.slice(first)) issue.fatal = true;
      return value;
    },
  };
}

export function transform(change: (value: Any) => unknown): Part {
  return { absent: "optional", run: (value) => settled(change(value)) };
}
