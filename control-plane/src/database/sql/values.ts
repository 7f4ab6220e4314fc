// How values travel to PostgreSQL and back. Everything but bytes travels as text.
//
// To the server:   null, text, numbers, booleans, dates, bytes, `json(…)`, and arrays of these. `undefined` and bare
//                  objects are refused: they are mistakes of the caller.
// From the server: 64-bit integers, numerics and intervals stay text, because a number or an object of ours would lose
//                  something. Types that are not listed below stay text too.

/** A value for a parameter of type json or jsonb. */
export class Json {
  readonly text: string;
  constructor(value: unknown) {
    this.text = JSON.stringify(value) ?? "null";
  }
}

export type Parameter =
  | string
  | number
  | bigint
  | boolean
  | null
  | Date
  | Uint8Array
  | Json
  | readonly Parameter[];

export function toParameter(value: Parameter, position: number): string | Buffer | null {
  if (typeof value === "string" || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return toText(value, position);
}

function toText(value: Exclude<Parameter, string | null | Uint8Array>, position: number): string {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Json) return value.text;
  if (Array.isArray(value)) return `{${value.map((one: Parameter) => elementOf(one, position)).join(",")}}`;
  const what = value === undefined ? "undefined" : "an object; wrap it in json()";
  throw new TypeError(`Parameter $${position} is ${what}.`);
}

function elementOf(value: Parameter, position: number): string {
  if (value === null) return "NULL";
  if (typeof value === "string") return quoted(value);
  if (value instanceof Uint8Array) return quoted(`\\x${Buffer.from(value).toString("hex")}`);
  const text = toText(value, position);
  return typeof value === "object" && !Array.isArray(value) ? quoted(text) : text;
}

const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&")}"`;

type Parse = (text: string) => unknown;

const parsers = new Map<number, Parse>([
  // boolean
  [16, (text) => text === "t"],
  // bytea
  [17, (text) => Buffer.from(text.slice(2), "hex")],
  // smallint, integer, oid, real, double precision
  ...[21, 23, 26, 700, 701].map((oid): [number, Parse] => [oid, Number]),
  // date, timestamp, timestamptz
  ...[1082, 1114, 1184].map((oid): [number, Parse] => [oid, (text) => new Date(text)]),
  // json, jsonb
  ...[114, 3802].map((oid): [number, Parse] => [oid, (text) => JSON.parse(text)]),
]);

/** The array type of each element type that we read arrays of. */
const arrayTypes: Record<number, number> = {
  ...{ 1000: 16, 1001: 17, 1005: 21, 1007: 23, 1028: 26, 1021: 700, 1022: 701 },
  ...{ 1182: 1082, 1115: 1114, 1185: 1184, 199: 114, 3807: 3802 },
  // bigint, numeric, text, varchar, name, uuid, inet
  ...{ 1016: 20, 1231: 1700, 1009: 25, 1015: 1043, 1003: 19, 2951: 2950, 1041: 869 },
};

const asText: Parse = (text) => text;

for (const [array, element] of Object.entries(arrayTypes)) {
  const parse = parsers.get(element) ?? asText;
  parsers.set(Number(array), (text) => parseArray(text, parse));
}

export const typeParser = (oid: number): Parse => parsers.get(oid) ?? asText;

/** Reads `{a,"b c",NULL,{…}}`. A prefix with bounds, `[0:1]={…}`, is skipped. */
function parseArray(text: string, parse: Parse): unknown[] {
  let at = text.indexOf("{");
  const list = (): unknown[] => {
    const items: unknown[] = [];
    at += 1;
    while (text[at] !== "}") {
      items.push(item());
      if (text[at] === ",") at += 1;
    }
    at += 1;
    return items;
  };
  const item = (): unknown => {
    if (text[at] === "{") return list();
    if (text[at] === '"') return parse(quotedItem());
    const start = at;
    while (text[at] !== "," && text[at] !== "}") at += 1;
    const plain = text.slice(start, at);
    return plain === "NULL" ? null : parse(plain);
  };
  const quotedItem = (): string => {
    let value = "";
    for (at += 1; text[at] !== '"'; at += 1) {
      if (text[at] === "\\") at += 1;
      value += text[at];
    }
    at += 1;
    return value;
  };
  return list();
}
