// Validates a request against the endpoint's schemas, and names the wrong field without
// repeating its value, which might be a secret.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { IDEMPOTENCY_HEADER, idempotencyKeyForm } from "@holdfast/contracts/headers";
import { problemInWords } from "@holdfast/contracts/problem-words";
import type { FastifyRequest } from "fastify";
import { z } from "zod";

export type Input = { params: unknown; query: unknown; body: unknown };

const nothing = z.strictObject({});

export function readInput(endpoint: Endpoint, request: Pick<FastifyRequest, "params" | "query" | "body">): Input {
  return {
    params: check(endpoint.params ?? nothing, request.params ?? {}, "path"),
    query: check(endpoint.query ?? nothing, request.query ?? {}, "query"),
    body: check(endpoint.body ?? nothing, endpoint.body ? request.body : (request.body ?? {}), "body"),
  };
}

export function idempotencyKey(request: FastifyRequest): string | undefined {
  const key = request.headers[IDEMPOTENCY_HEADER];
  if (key === undefined) return undefined;
  if (typeof key === "string" && idempotencyKeyForm.test(key)) return key;
  throw new ApiError("invalid_request", {
    details: {
      fields: [{ field: IDEMPOTENCY_HEADER, problem: "1 to 128 printable ASCII characters, no spaces" }],
    },
  });
}

function check(schema: z.ZodType, value: unknown, where: string): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = fieldProblems(result.error, where);
  const unknownOnly = result.error.issues.every((issue) => issue.code === "unrecognized_keys");
  throw new ApiError(unknownOnly ? "unknown_field" : "invalid_request", { details: { fields } });
}

/** Each invalid field below `where`, and what is wrong with it. */
export function fieldProblems(error: z.ZodError, where: string) {
  return error.issues.map((issue) => ({
    field: [where, ...issue.path.map(String)].join("."),
    problem: problemInWords(issue),
    ...(issue.code === "unrecognized_keys" ? { unknown: issue.keys } : {}),
  }));
}
