// Turns every failure at a listener into the one error envelope. What the client caused is a 4xx without a
// separate log line; only the server's own failures are logged, with their stack.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { CORRELATION_HEADER, correlationIdForm } from "@holdfast/contracts/headers";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "./log.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { organizationOf } from "./request-organization.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Error codes in capitals, where callers of another system expect them. */
    upperCaseCodes?: boolean;
  }
}

export type RefusalOptions = {
  log: Log;
  bodyLimit: number;
  /** Turns an error of a lower layer into one for clients; undefined leaves it an internal error. */
  translateError?: (error: unknown) => ApiError | undefined;
  /** The last word on what is answered, where callers know other codes. */
  rephrase?: (error: ApiError) => ApiError;
};

/** The client's own id if it has the right form, else a new one. */
export function correlationIdOf(request: IncomingMessage): string {
  const offered = request.headers[CORRELATION_HEADER];
  return typeof offered === "string" && correlationIdForm.test(offered) ? offered : uuidv7();
}

export async function answerError(
  options: RefusalOptions,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const known =
    error instanceof ApiError ? error : (options.translateError?.(error) ?? fastifyError(error, options));
  if (known === undefined) {
    options.log.error(
      {
        err: error,
        correlation_id: request.id,
        org_id: organizationOf(request),
        route: request.routeOptions?.url,
      },
      "request failed with an unhandled error",
    );
  }
  const refusal = known ?? new ApiError("internal_error");
  const answer = options.rephrase?.(refusal) ?? refusal;
  const envelope = answer.envelope(request.id);
  const code = request.routeOptions?.config?.upperCaseCodes ? envelope.code.toUpperCase() : envelope.code;
  return reply
    .code(answer.status)
    .headers({ ...answer.headers, [CORRELATION_HEADER]: request.id })
    .type("application/json; charset=utf-8")
    .send(JSON.stringify({ ...envelope, code }));
}

/** What Fastify itself refuses. Its own message repeats the URL, which may hold anything. */
function fastifyError(error: unknown, options: RefusalOptions): ApiError | undefined {
  const { code, statusCode = 500 } = error as Partial<FastifyError>;
  switch (code) {
    case "FST_ERR_CTP_INVALID_JSON_BODY":
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
      return new ApiError("malformed_json");
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new ApiError("body_too_large", {
        details: { limit_bytes: options.bodyLimit },
        headers: { connection: "close" },
      });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new ApiError("unsupported_media_type");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return invalid("headers.content-length", "does not match the body");
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return invalid("path", "is too long or cannot be decoded");
    default:
      // secure-json-parse refuses __proto__ and constructor keys without a code of Fastify's.
      if (error instanceof SyntaxError) return new ApiError("malformed_json");
      return code?.startsWith("FST_ERR_") && statusCode < 500 ? new ApiError("invalid_request") : undefined;
  }
}

function invalid(field: string, problem: string): ApiError {
  return new ApiError("invalid_request", { details: { fields: [{ field, problem }] } });
}

/** Responds to what Node.js does not pass to the router: an unknown `Expect`, and CONNECT. */
export function refuseBeforeRouting(server: Server): void {
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    const id = correlationIdOf(request);
    const error = invalid("headers.expect", "only 100-continue is supported");
    const body = JSON.stringify(error.envelope(id));
    const headers = {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(body),
      [CORRELATION_HEADER]: id,
      connection: "close",
    };
    response.writeHead(error.status, headers).end(body);
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    const error = new ApiError("method_not_allowed", { headers: { allow: "GET, POST, PATCH, DELETE" } });
    refuseUpgrade(socket, error, correlationIdOf(request));
  });
}

/** Responds to what Node could not parse as HTTP, or timed out. */
export function refuseBroken(log: Log, error: NodeJS.ErrnoException, socket: Socket): void {
  const id = uuidv7();
  log.info({ correlation_id: id, reason: error.code }, "request that is not HTTP");
  refuseUpgrade(socket, new ApiError("invalid_request"), id);
}
