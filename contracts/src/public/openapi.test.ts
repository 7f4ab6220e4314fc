import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describe, expect, it } from "vitest";
import { statusOf } from "../endpoint.ts";
import { allEndpoints } from "../endpoints/all.ts";
import { errorCatalogue } from "../errors.ts";
import { refusalsOf, sentCode } from "../refusals.ts";
import { openApiDocument } from "./openapi.ts";

type Operation = {
  operationId: string;
  security: object[];
  parameters: { name: string; in: string; required: boolean; schema: object; description?: string }[];
  requestBody?: { required: boolean; content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content?: Record<string, { schema: object }> }>;
};

const document = JSON.parse(JSON.stringify(openApiDocument(allEndpoints, { version: "1.2.3" })));
const paths = document.paths as Record<string, Record<string, Operation>>;
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const each = allEndpoints.map((endpoint) => [endpoint.name, endpoint] as const);

function operationOf(name: string): Operation {
  const found = operations.find(({ operation }) => operation.operationId === name);
  if (!found) throw new Error(`${name} is not in the document`);
  return found.operation;
}

function valuesOf(node: unknown, key: string): string[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([name, child]) =>
    name === key && typeof child === "string" ? [child] : valuesOf(child, key),
  );
}

describe("the OpenAPI document", () => {
  it("OPS-01 has no error and no warning by the recommended rules of Redocly", async () => {
    const config = await createConfig({ extends: ["recommended"] });
    const source = JSON.stringify(document);
    const problems = await lintFromString({ source, absoluteRef: "/openapi.json", config });
    const lines = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
    expect(lines).toEqual([]);
  });

  it("is 3.1 and holds every endpoint once, under its method and path", () => {
    expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Holdfast API", version: "1.2.3" } });
    const shown = operations.map(({ path, method, operation }) => `${operation.operationId} ${method} ${path}`);
    expect(shown.sort()).toEqual(
      allEndpoints.map(({ name, method, path }) => `${name} ${method.toLowerCase()} ${path}`).sort(),
    );
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
  });

  it("refers only to what is in it", () => {
    const references = valuesOf(document, "$ref");
    expect(references.length).toBeGreaterThan(allEndpoints.length);
    for (const reference of new Set(references)) {
      const parts = reference.replace(/^#\//, "").split("/");
      const target = parts.reduce<unknown>((node, part) => (node as Record<string, unknown>)?.[part], document);
      expect(target, reference).toBeTypeOf("object");
    }
    const schemes = Object.keys(document.components.securitySchemes);
    const used = operations.flatMap(({ operation }) => operation.security.flatMap((one) => Object.keys(one)));
    expect(new Set(used)).toEqual(new Set(schemes));
  });

  it.for(each)("describes input and answer of %s", ([name, endpoint]) => {
    const { parameters, requestBody, responses } = operationOf(name);
    const inPath = parameters.filter((one) => one.in === "path");
    expect(inPath.map((one) => one.name)).toEqual([...endpoint.path.matchAll(/\{(\w+)\}/g)].map((one) => one[1]));
    expect(inPath.every((one) => one.required)).toBe(true);
    expect(parameters.filter((one) => one.in === "query").map((one) => one.name)).toEqual(
      Object.keys(endpoint.query?.shape ?? {}),
    );
    expect(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size).toBe(parameters.length);
    expect(requestBody !== undefined).toBe(endpoint.body !== undefined);
    const done = responses[String(statusOf(endpoint))];
    expect(done?.content !== undefined).toBe(endpoint.answer !== undefined);
    expect(parameters.some((one) => one.name === "idempotency-key")).toBe(endpoint.creates === true);
    expect(parameters.some((one) => one.name === "x-org-id")).toBe(typeof endpoint.access === "object");
  });

  it.for(each)(
    "names every error code of %s under its status, and no code that does not exist",
    ([name, endpoint]) => {
      const failures = Object.entries(operationOf(name).responses).filter(([status]) => Number(status) >= 400);
      const documented = failures.flatMap(([status, { description }]) =>
        description
          .split("\n\n")
          .map((line) => ({ code: /^`(\w+)`/.exec(line)?.[1] ?? line, status: Number(status) })),
      );
      const sent = (code: string) => sentCode(endpoint, code);
      const expected = refusalsOf(endpoint).map((code) => ({
        code: sent(code),
        status: errorCatalogue[code].status,
      }));
      expect(documented).toEqual(expected);
      const codes = documented.map(({ code }) => code);
      expect(codes).toEqual(expect.arrayContaining([...(endpoint.errors ?? [])].map(sent)));
      if (endpoint.access !== "public") expect(codes).toContain(sent("unauthenticated"));
    },
  );

  it("is the document in the repository, but for the version", () => {
    const stored = JSON.parse(
      readFileSync(new URL("../../../docs/reference/openapi.json", import.meta.url), "utf8"),
    );
    expect({ ...stored, info: { ...stored.info, version: "1.2.3" } }).toEqual(document);
  });
});
