// An example call that works when pasted, once the variables in it are set.

import type { Operation } from "./operations.ts";
import type { Schema } from "./schema-rows.ts";

export function curlOf(operation: Operation, origin: string): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const parts = [
    operation.method === "GET" ? `curl "${origin}${path}"` : `curl -X ${operation.method} "${origin}${path}"`,
  ];
  if (operation.access !== "public") parts.push(`-H "authorization: Bearer $HOLDFAST_TOKEN"`);
  if (operation.bodySchema) {
    const body = JSON.stringify(exampleOf(operation.bodySchema, "")).replaceAll("'", String.raw`'\''`);
    parts.push(`-H "content-type: application/json"`, `-d '${body}'`);
  }
  return parts.join(" \\\n  ");
}

/** The smallest value that could be accepted: of an object, only the required fields. */
function exampleOf(schema: Schema, name: string): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf?.[0]) return exampleOf(schema.anyOf[0], name);
  if (schema.properties) {
    const given = Object.entries(schema.properties).filter(([each]) => schema.required?.includes(each));
    return Object.fromEntries(given.map(([each, field]) => [each, exampleOf(field, each)]));
  }
  if (schema.type === "array") return schema.items ? [exampleOf(schema.items, name)] : [];
  if (schema.type === "integer" || schema.type === "number") return Math.max(1, schema.minimum ?? 1);
  if (schema.type === "boolean") return true;
  return exampleText(name, schema.format);
}

const texts: Record<string, string> = {
  email: "you@example.org",
  name: "Tidewater",
  slug: "tidewater",
  secret: "hfl_…",
  password: "a few words in a row",
};

function exampleText(name: string, format: string | undefined): string {
  const known = Object.keys(texts).find((each) => name.includes(each));
  if (known) return texts[known] ?? "";
  if (format === "uuid") return "00000000-0000-0000-0000-000000000000";
  return name || "text";
}
