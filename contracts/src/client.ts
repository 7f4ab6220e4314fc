// Calls an endpoint. The web app and the CLI use the same one, so neither knows a URL or a shape.

import type { z } from "zod";
import { CallError } from "./call-error.ts";
import {
  type AnswerOf,
  type BodyInputOf,
  type Endpoint,
  type ParamsOf,
  pathOf,
  type QueryInputOf,
} from "./endpoint.ts";
import { ApiError, ErrorEnvelope } from "./errors.ts";
import { CORRELATION_HEADER, IDEMPOTENCY_HEADER, ORG_HEADER } from "./headers.ts";

export { CallError, codeOf, type FieldProblem, fieldProblemsOf, isRetryable } from "./call-error.ts";

export type ClientOptions = {
  /** Empty for the page's own origin. */
  baseUrl: string;
  token?: string;
  orgId?: string;
  fetch?: typeof fetch;
};

/** An endpoint without such fields infers an index signature of `never`; then the part is left out. */
type Part<Name extends string, T> = string extends keyof T ? { [K in Name]?: undefined } : { [K in Name]: T };
type OptionalPart<Name extends string, T> = { [K in Name]?: T };
type BodyPart<T> = [T] extends [undefined] ? { body?: undefined } : { body: T };

export type CallOptions<E> = Part<"params", ParamsOf<E>> &
  OptionalPart<"query", QueryInputOf<E>> &
  BodyPart<BodyInputOf<E>> & { idempotencyKey?: string; correlationId?: string; signal?: AbortSignal };

type AnyEndpoint = Endpoint<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType>;

export type Client = <E extends AnyEndpoint>(endpoint: E, options: CallOptions<E>) => Promise<AnswerOf<E>>;

export function createClient(options: ClientOptions): Client {
  const send = options.fetch ?? fetch;
  return async <E extends AnyEndpoint>(endpoint: E, call: CallOptions<E>): Promise<AnswerOf<E>> => {
    const headers: Record<string, string> = { accept: "application/json" };
    if (options.token) headers["authorization"] = `Bearer ${options.token}`;
    if (options.orgId) headers[ORG_HEADER] = options.orgId;
    if (call.body !== undefined) headers["content-type"] = "application/json";
    if (call.idempotencyKey) headers[IDEMPOTENCY_HEADER] = call.idempotencyKey;
    if (call.correlationId) headers[CORRELATION_HEADER] = call.correlationId;
    const response = await send(`${options.baseUrl}${pathOf(endpoint, call.params)}${queryText(call.query)}`, {
      method: endpoint.method,
      headers,
      credentials: "same-origin",
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      ...(call.signal ? { signal: call.signal } : {}),
    });
    if (response.status === 204) return undefined as AnswerOf<E>;
    const answer: unknown = await response.json().catch(() => undefined);
    // A proxy's own page may come with 200: whatever is not JSON is not an answer of ours.
    if (!response.ok || answer === undefined)
      throw new CallError(response.status, understandError(response, withCode(endpoint, answer), options.baseUrl));
    return answer as AnswerOf<E>;
  };
}

function queryText(query: Record<string, unknown> | undefined): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text && `?${text}`;
}

/** Callers decide by the codes of the catalogue, also where an endpoint sends them in capitals. */
function withCode({ upperCaseCodes }: AnyEndpoint, answer: unknown): unknown {
  if (!upperCaseCodes || typeof answer !== "object" || answer === null || !("code" in answer)) return answer;
  return { ...answer, code: String(answer.code).toLowerCase() };
}

/** The runbook's path becomes an address that can be opened. */
function understandError(response: Response, answer: unknown, baseUrl: string): ErrorEnvelope {
  const parsed = ErrorEnvelope.safeParse(answer);
  if (parsed.success) {
    const { runbook } = parsed.data;
    return runbook === undefined ? parsed.data : { ...parsed.data, runbook: `${baseUrl}${runbook}` };
  }
  const correlationId = response.headers.get(CORRELATION_HEADER) ?? "unknown";
  return new ApiError("internal_error", {
    message: `The server answered ${response.status} in a form that is not ours; a proxy may stand between.`,
  }).envelope(correlationId);
}
