// A JSON Schema as rows of a table: `items[].scopes[]`, its type as text, whether it is required.

export type Schema = {
  type?: string | string[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
};

export type FieldRow = { name: string; type: string; required: boolean; description: string; limits: string };

export function rowsOfSchema(schema: Schema, prefix = ""): FieldRow[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const { core } = splitNull(field);
    const row: FieldRow = {
      name: path,
      type: typeInWords(field),
      required: schema.required?.includes(name) ?? false,
      description: field.description ?? core.description ?? "",
      limits: limitsInWords(core, field.default),
    };
    const inner = core.type === "array" && core.items ? core.items : core;
    return [row, ...rowsOfSchema(inner, inner === core ? `${path}.` : `${path}[].`)];
  });
}

/** `anyOf [T, null]` and `type: [T, "null"]` are how "or null" is written. */
const readableFormats = new Set(["uuid", "email", "date-time", "uri"]);

function splitNull(schema: Schema): { core: Schema; nullable: boolean } {
  if (schema.anyOf) {
    const others = schema.anyOf.filter((each) => each.type !== "null");
    const nullable = others.length < schema.anyOf.length;
    const [only] = others;
    return { core: others.length === 1 && only ? only : { ...schema, anyOf: others }, nullable };
  }
  if (Array.isArray(schema.type)) {
    const others = schema.type.filter((each) => each !== "null");
    return { core: { ...schema, type: others[0] }, nullable: others.length < schema.type.length };
  }
  return { core: schema, nullable: false };
}

export function typeInWords(schema: Schema): string {
  const { core, nullable } = splitNull(schema);
  return nullable ? `${bareType(core)} or null` : bareType(core);
}

function bareType(schema: Schema): string {
  if (schema.anyOf) return [...new Set(schema.anyOf.flatMap((each) => bareType(each).split(" | ")))].join(" | ");
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `array of ${schema.items ? bareType(schema.items) : "anything"}`;
  // zod notes its own checks as formats too; only these tell a reader something.
  if (schema.type === "string" && schema.format && readableFormats.has(schema.format)) return schema.format;
  return typeof schema.type === "string" ? schema.type : "anything";
}

function limitsInWords(schema: Schema, fallback: unknown): string {
  const words: string[] = [];
  const { minLength, maxLength, minimum, maximum, minItems } = schema;
  if (minLength !== undefined && minLength > 1) words.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) words.push(`at most ${maxLength} characters`);
  if (minimum !== undefined && Math.abs(minimum) < Number.MAX_SAFE_INTEGER) words.push(`from ${minimum}`);
  if (maximum !== undefined && Math.abs(maximum) < Number.MAX_SAFE_INTEGER) words.push(`up to ${maximum}`);
  if (minItems) words.push(`at least ${minItems}`);
  if (fallback !== undefined) words.push(`default ${JSON.stringify(fallback)}`);
  return words.join(", ");
}
