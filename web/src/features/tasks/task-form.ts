// A form made from the JSON Schema of a task type's parameters. Only simple fields become controls;
// a schema with anything else is filled in as JSON, whole.

export type FormField = {
  name: string;
  kind: "text" | "number" | "checkbox" | "choice" | "lines";
  required: boolean;
  hint: string;
  choices: readonly string[];
  integer: boolean;
  min?: number;
  max?: number;
  maxLength?: number;
  fallback: string | boolean;
};

export type FormValues = Record<string, string | boolean>;

type Schema = {
  type?: unknown;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: unknown;
};

/** Null: not for a form. */
export function formFieldsOf(schema: unknown): FormField[] | null {
  const { type, properties, required = [], additionalProperties } = (schema ?? {}) as Schema;
  if (type !== "object") return null;
  if (additionalProperties !== undefined && typeof additionalProperties === "object") return null;
  const fields: FormField[] = [];
  for (const [name, each] of Object.entries(properties ?? {})) {
    const kind = kindOf(each);
    if (!kind) return null;
    fields.push(fieldOf(name, kind, each, required.includes(name)));
  }
  return fields;
}

function kindOf(schema: Schema): FormField["kind"] | null {
  if (schema.enum) return schema.enum.every((each) => typeof each === "string") ? "choice" : null;
  if (schema.type === "string") return "text";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "boolean") return "checkbox";
  if (schema.type !== "array") return null;
  const { items } = schema;
  return items?.type === "string" && !items.enum ? "lines" : null;
}

/** zod writes the limits of whole numbers even where none is set. */
const meant = (limit: number | undefined) =>
  Math.abs(limit ?? Infinity) >= Number.MAX_SAFE_INTEGER ? undefined : limit;

function fieldOf(name: string, kind: FormField["kind"], schema: Schema, required: boolean): FormField {
  const min = meant(schema.minimum);
  const max = meant(schema.maximum);
  return {
    name,
    kind,
    required: required && schema.default === undefined,
    hint: [schema.description, limits(min, max)].filter(Boolean).join(" "),
    choices: (schema.enum ?? []) as string[],
    integer: schema.type === "integer",
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(schema.maxLength === undefined ? {} : { maxLength: schema.maxLength }),
    fallback: fallbackOf(kind, schema, required),
  };
}

function limits(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return `From ${min} to ${max}.`;
  if (min !== undefined) return `At least ${min}.`;
  return max === undefined ? "" : `At most ${max}.`;
}

function fallbackOf(kind: FormField["kind"], schema: Schema, required: boolean): string | boolean {
  if (kind === "checkbox") return schema.default === true;
  if (kind === "lines") return Array.isArray(schema.default) ? schema.default.join("\n") : "";
  if (schema.default !== undefined) return String(schema.default);
  return kind === "choice" && required ? String(schema.enum?.[0] ?? "") : "";
}

export function startingValues(fields: readonly FormField[]): FormValues {
  return Object.fromEntries(fields.map((field) => [field.name, field.fallback]));
}

/** What is left empty is left out: the type's own default or rule then speaks. */
export function paramsFrom(fields: readonly FormField[], values: FormValues): Record<string, unknown> {
  const params: Record<string, unknown> = {};
  for (const field of fields) {
    const value = values[field.name] ?? field.fallback;
    if (typeof value === "boolean") {
      if (value || field.required || field.fallback) params[field.name] = value;
    } else if (field.kind === "lines") {
      const lines = linesOf(value);
      if (lines.length > 0 || field.required) params[field.name] = lines;
    } else if (value !== "") {
      params[field.name] = field.kind === "number" ? Number(value) : value;
    } else if (field.required && field.kind === "text") params[field.name] = "";
  }
  return params;
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}

/** `params.hosts.0` and `hosts[0]` are both about the field `hosts`. */
export function fieldOfPath(path: string): string {
  const inner = path.replace(/^params\b\.?/, "");
  return /^[^.[]*/.exec(inner)?.[0] ?? "";
}
