// The parameters of a task on the command line: `--params` with JSON, `--param key=value` for
// single ones. The schema of the task type decides whether `5` is a number or a string.

import { UsageError } from "@holdfast/kit/settings";

export type ParamOptions = { params?: string; param?: string[] };

/** `schema` is the JSON Schema of the type's parameters, as far as it is known. */
export function readParams(options: ParamOptions, schema: unknown): Record<string, unknown> {
  const params = options.params === undefined ? {} : parseObject(options.params);
  for (const pair of options.param ?? []) {
    const [, key, text] = /^([^=]+)=([\s\S]*)$/.exec(pair) ?? [];
    if (key === undefined || text === undefined)
      throw new UsageError(`--param is ${JSON.stringify(pair)}; expected key=value.`);
    params[key] = isText(schema, key) ? text : jsonOrText(text);
  }
  return params;
}

function parseObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  const problem = value === undefined ? "not JSON" : "not an object";
  throw new UsageError(`--params is ${JSON.stringify(text)}, which is ${problem}. Example: '{"hold_ms": 500}'`);
}

function jsonOrText(text: string): unknown {
  const value = parseJson(text);
  return value === undefined ? text : value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isText(schema: unknown, key: string): boolean {
  const { properties } = (schema ?? {}) as { properties?: Record<string, { type?: string }> };
  return properties?.[key]?.type === "string";
}
