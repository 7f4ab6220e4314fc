// Code as a tree, printed on one line where it fits and on several where it does not. What occurs more than once gets a
// name, so that a form that many fields share is there once.

export type Code =
  | string
  | { open: string; items: readonly (readonly [label: string, code: Code])[]; close: string };

const WIDTH = 100;
/** Shorter code is repeated. */
const LEAST_NAMED = 60;

export function call(name: string, ...args: readonly (Code | undefined)[]): Code {
  return { open: `${name}(`, items: args.filter((arg) => arg !== undefined).map((arg) => ["", arg]), close: ")" };
}

export function list(items: readonly Code[]): Code {
  return { open: "[", items: items.map((item) => ["", item]), close: "]" };
}

export function fields(entries: readonly (readonly [name: string, code: Code])[]): Code {
  const items = entries.map(([name, code]) => [`${keyText(name)}: `, code] as const);
  return { open: "{", items, close: "}" };
}

function keyText(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name);
}

/** Code of a value as JSON has them; undefined for any other. */
export function literal(value: unknown): Code | undefined {
  if (typeof value === "number")
    return Object.is(value, -0) ? "-0" : Number.isFinite(value) ? String(value) : undefined;
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) {
    const items = value.map(literal);
    return items.every((item) => item !== undefined) ? list(items) : undefined;
  }
  if (typeof value !== "object" || ![Object.prototype, null].includes(Object.getPrototypeOf(value)))
    return undefined;
  const entries = Object.entries(value).map(([name, item]) => [name, literal(item)] as const);
  const isWhole = entries.every(
    (entry): entry is [string, Code] => entry[1] !== undefined && entry[0] !== "__proto__",
  );
  return isWhole ? fields(entries) : undefined;
}

/** The declarations of what is shared, and how to print code that may use them. */
export function shareRepeated(codes: readonly Code[]): { declarations: string; print: (code: Code) => string } {
  const times = new Map<string, { code: Code; count: number }>();
  const visit = (code: Code) => {
    if (typeof code === "string") return;
    const text = flat(code);
    const seen = times.get(text);
    times.set(text, { code, count: (seen?.count ?? 0) + 1 });
    // The inside of something repeated is counted once.
    if (!seen) for (const [, item] of code.items) visit(item);
  };
  for (const code of codes) visit(code);
  const repeated = [...times].filter(
    ([text, { count }]) => count > 1 && text.length >= LEAST_NAMED && isCheck(text),
  );
  // A part is shorter than what it is a part of, and is declared before it.
  repeated.sort(([one], [other]) => one.length - other.length);
  const names = new Map<string, string>();
  let declarations = "";
  for (const [text, { code }] of repeated) {
    declarations += `const shared${names.size + 1} = ${printed(code, names, 0)};\n`;
    names.set(text, `shared${names.size + 1}`);
  }
  return { declarations, print: (code) => printed(code, names, 0) };
}

const isCheck = (text: string) => text.startsWith("check.");

/** On one line. */
export function flat(code: Code): string {
  if (typeof code === "string") return code;
  return code.open + code.items.map(([label, item]) => label + flat(item)).join(", ") + code.close;
}

function printed(code: Code, names: ReadonlyMap<string, string>, indent: number): string {
  if (typeof code === "string") return code;
  const whole = flat(code);
  const name = names.get(whole);
  if (name !== undefined) return name;
  const short =
    code.open + code.items.map(([label, item]) => label + printed(item, names, 0)).join(", ") + code.close;
  if (!short.includes("\n") && short.length + indent <= WIDTH) return short;
  const [only] = code.items;
  if (only && code.items.length === 1 && only[0] === "")
    return code.open + printed(only[1], names, indent) + code.close;
  const margin = " ".repeat(indent + 2);
  const lines = code.items.map(([label, item]) => `${margin}${label}${printed(item, names, indent + 2)},\n`);
  return `${code.open}\n${lines.join("")}${" ".repeat(indent)}${code.close}`;
}
