// Rules that every endpoint keeps. They are walked over the list itself, so that a new endpoint
// cannot be forgotten.

import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Endpoint, pathOf, statusOf } from "../endpoint.ts";
import { allEndpoints } from "./all.ts";
import { inspectLink } from "./sign-in.ts";

const each = allEndpoints.map((endpoint) => [endpoint.name, endpoint] as const);

function duplicates(values: string[]): string[] {
  return values.filter((value, index) => values.indexOf(value) !== index);
}

/** Paths of all objects within a schema that let unknown fields through. */
function looseObjects(schema: z.ZodType, where: string): string[] {
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  const found: string[] = [];
  const walk = (node: unknown, path: string): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, properties, additionalProperties } = node as Record<string, unknown>;
    // A record of anything has no `properties`: it means to take any key.
    if (type === "object" && properties && additionalProperties !== false) found.push(path);
    for (const [key, child] of Object.entries(node)) walk(child, `${path}.${key}`);
  };
  walk(json, where);
  return found;
}

const inputsOf = ({ params, query, body }: Endpoint) =>
  Object.entries({ params, query, body }).filter((entry): entry is [string, z.ZodType] => entry[1] !== undefined);

describe("endpoints", () => {
  it("lists every endpoint that the folder declares", async () => {
    const files = readdirSync(import.meta.dirname).filter((name) => /^(?!all\b).*(?<!\.test)\.ts$/.test(name));
    expect(files.length).toBeGreaterThan(6);
    const declared = await Promise.all(files.map((name) => import(new URL(name, import.meta.url).href)));
    const endpoints = declared
      .flatMap((module) => Object.values(module as Record<string, unknown>))
      .filter((value) => typeof value === "object" && value !== null && "method" in value && "path" in value);
    expect(new Set(allEndpoints)).toEqual(new Set(endpoints));
  });

  it("have one name and one route each", () => {
    expect(duplicates(allEndpoints.map(({ name }) => name))).toEqual([]);
    // Placeholders of different names take the same requests.
    const routes = allEndpoints.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`);
    expect(duplicates(routes)).toEqual([]);
  });

  it.for(each)("AUDIT-01 names what the audit calls %s, if it changes something", ([, endpoint]) => {
    if (endpoint.method === "GET" || endpoint === inspectLink) expect(endpoint.action).toBeUndefined();
    else expect(endpoint.action).toMatch(/^[a-z_]+\.[a-z_]+$/);
  });

  it("AUDIT-01 have an action of their own each", () => {
    expect(duplicates(allEndpoints.flatMap(({ action }) => action ?? []))).toEqual([]);
  });

  it.for(each)("declares exactly the placeholders of its path as params: %s", ([, { path, params }]) => {
    const placeholders = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    expect(Object.keys(params?.shape ?? {}).sort()).toEqual(placeholders.sort());
  });

  /** Whatever the sender has: cleaned before it is stored (control-plane/src/workflows/triggers/hook-route.ts). */
  const anything = ["receiveHook body"];
  /** Existing agents of another system may send more than is known here, and that is ignored. */
  const tolerant = ["pairAgent body", ...anything];

  it.for(each)("SEC-03 refuses fields that it does not know: %s", ([, endpoint]) => {
    for (const [where, schema] of inputsOf(endpoint)) {
      if (tolerant.includes(`${endpoint.name} ${where}`)) continue;
      expect(looseObjects(schema, where)).toEqual([]);
      const problems = schema.safeParse({ surprise: true }).error?.issues ?? [];
      expect(
        problems.map(({ code }) => code),
        where,
      ).toContain("unrecognized_keys");
    }
    expect(looseObjects(endpoint.answer ?? z.undefined(), "answer")).toEqual([]);
  });

  /** Never stored as they are: hashed, or taken apart before anything looks for them. */
  const neverStored = ["password", "current_password", "new_password", "secret", "token", "csr", "cursor"];

  it.for(each)("SEC-03 refuses text that the database cannot store: %s", ([, endpoint]) => {
    for (const [where, schema] of inputsOf(endpoint)) {
      if (anything.includes(`${endpoint.name} ${where}`)) continue;
      const fields = Object.entries((schema as z.ZodObject).shape as Record<string, z.ZodType>);
      for (const [name, field] of fields.filter(([name]) => !neverStored.includes(name))) {
        expect(field.safeParse("a\u0000b").success, `${where}.${name}`).toBe(false);
      }
      expect(fields.length, where).toBeGreaterThan(0);
    }
    expect(endpoint.path).not.toContain("\u0000");
  });

  it.for(each)("answers a read with a body, and only a read may come without one: %s", ([, endpoint]) => {
    if (endpoint.method === "GET") {
      expect(endpoint.body).toBeUndefined();
      expect(endpoint.answer).toBeDefined();
    }
    expect(statusOf(endpoint)).toBe(endpoint.answer ? (endpoint.creates ? 201 : 200) : 204);
    if (endpoint.creates) expect(endpoint.method).toBe("POST");
  });

  it("take params into the path in one piece, whatever they hold", () => {
    const endpoint = { path: "/v1/things/{id}/parts/{part}" } as Endpoint;
    expect(pathOf(endpoint, { id: "../a b?c#d", part: "%2f" })).toBe("/v1/things/..%2Fa%20b%3Fc%23d/parts/%252f");
  });
});
