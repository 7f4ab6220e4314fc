// OpenAPI 3.1 from the endpoint declarations.

import { z } from "zod";
import { type Endpoint, statusOf } from "../endpoint.ts";
import { type ErrorCode, ErrorEnvelope, errorCatalogue, errorCodes } from "../errors.ts";
import { CORRELATION_HEADER, IDEMPOTENCY_HEADER, ORG_HEADER } from "../headers.ts";
import { refusalsOf, sentCode } from "../refusals.ts";

type Json = Record<string, unknown>;

export function openApiDocument(endpoints: readonly Endpoint[], info: { version: string }): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const methods = paths[endpoint.path] ?? {};
    methods[endpoint.method.toLowerCase()] = operation(endpoint);
    paths[endpoint.path] = methods;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast API",
      version: info.version,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
      description:
        "Errors share one envelope and a catalogue of codes. Listings answer `{items, next_cursor}`. " +
        "Every answer carries `x-correlation-id`; send your own to follow a request through logs and audit.",
    },
    servers: [{ url: "/", description: "The installation that serves this document." }],
    paths,
    components: {
      schemas: {
        Error: jsonSchema(ErrorEnvelope, "output"),
        ErrorInCapitals: jsonSchema(ErrorInCapitals, "output"),
      },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "An API token (`holdfast token create`)." },
        session: { type: "apiKey", in: "cookie", name: "session", description: "Set by sign-in, HttpOnly." },
      },
    },
  };
}

/** Of endpoints whose callers of another system expect it. */
const ErrorInCapitals = ErrorEnvelope.extend({
  code: z.enum(errorCodes.map((code) => sentCode({ upperCaseCodes: true }, code))),
});

function operation(endpoint: Endpoint): Json {
  return {
    operationId: endpoint.name,
    tags: [endpoint.noun],
    summary: endpoint.summary,
    ...(endpoint.description ? { description: endpoint.description } : {}),
    security: endpoint.access === "public" ? [] : [{ token: [] }, { session: [] }],
    "x-access": typeof endpoint.access === "object" ? endpoint.access.scope : endpoint.access,
    parameters: [
      ...parametersOf(endpoint.params, "path"),
      ...parametersOf(endpoint.query, "query"),
      ...headersOf(endpoint),
    ],
    ...(endpoint.body
      ? { requestBody: { required: true, content: jsonContent(jsonSchema(endpoint.body, "input")) } }
      : {}),
    responses: { ...successOf(endpoint), ...failuresOf(endpoint) },
  };
}

function successOf(endpoint: Endpoint): Json {
  const status = String(statusOf(endpoint));
  if (!endpoint.answer) return { [status]: { description: "Done; no body." } };
  return { [status]: { description: "Done.", content: jsonContent(jsonSchema(endpoint.answer, "output")) } };
}

function failuresOf(endpoint: Endpoint): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of refusalsOf(endpoint)) {
    const { status } = errorCatalogue[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes
          .map((code) => `\`${sentCode(endpoint, code)}\` ${errorCatalogue[code].message}`)
          .join("\n\n"),
        content: jsonContent({
          $ref: `#/components/schemas/${endpoint.upperCaseCodes ? "ErrorInCapitals" : "Error"}`,
        }),
      },
    ]),
  );
}

function parametersOf(object: z.ZodObject | undefined, where: "path" | "query"): Json[] {
  return Object.entries(object?.shape ?? {}).map(([name, field]) => {
    const schema = jsonSchema(field as z.ZodType, "input");
    const { description, ...rest } = schema;
    const required = where === "path" || !(field as z.ZodType).safeParse(undefined).success;
    return { name, in: where, required, ...(description ? { description } : {}), schema: rest };
  });
}

function headersOf(endpoint: Endpoint): Json[] {
  const header = (name: string, description: string) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  });
  const headers = [header(CORRELATION_HEADER, "Your own id for this request; returned, logged and stored.")];
  if (typeof endpoint.access === "object") {
    headers.push(
      header(ORG_HEADER, "The organization to act in. Optional with an API token, which belongs to one."),
    );
  }
  if (endpoint.creates) {
    headers.push(
      header(
        IDEMPOTENCY_HEADER,
        "Repeat a request safely: the same key, path and body give the same answer; anything else is a conflict.",
      ),
    );
  }
  return headers;
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return rest;
}

function jsonContent(schema: Json): Json {
  return { "application/json": { schema } };
}
