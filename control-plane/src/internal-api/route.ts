// Joins an endpoint of the internal listener with its handler. Only the identity hook decides who calls. A request ends
// when its caller disconnects, and a held one also when the server stops.

import type { AnswerOf, BodyOf, Endpoint, ParamsOf, QueryOf } from "@holdfast/contracts/endpoint";
import { statusOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readInput } from "../api/input.ts";
import type { ServiceIdentity } from "../identity/certificates.ts";

/** What routes use of the internal listener. */
export type InternalApi = {
  http: FastifyInstance;
  identityOf(request: FastifyRequest): ServiceIdentity;
  /** Functions that end the held requests. */
  held: Set<() => void>;
};

export type InternalCall<E> = {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  correlationId: string;
  service: ServiceIdentity;
  /** Aborted when the connection closes, and, with `shutting_down` as the reason, when the server stops. */
  signal: AbortSignal;
};

export function internalRoute<E extends Endpoint>(
  api: InternalApi,
  endpoint: E,
  handle: (call: InternalCall<E>) => Promise<AnswerOf<E>>,
): void {
  register(api, endpoint, async (request, reply) => {
    const answer = await untilGone(api, reply, (signal) => handle(callOf<E>(api, endpoint, request, signal)));
    const status = statusOf(endpoint);
    reply.header("cache-control", "no-store").code(status);
    if (status === 204) return reply.send();
    return reply.type("application/json; charset=utf-8").send(JSON.stringify(answer));
  });
}

/** For a streamed response: lines of JSON until the caller disconnects or the server stops. */
export function internalStream<E extends Endpoint>(
  api: InternalApi,
  endpoint: E,
  follow: (call: InternalCall<E>, send: (line: object) => void) => void,
): void {
  register(api, endpoint, async (request, reply) => {
    const controller = new AbortController();
    const call = callOf<E>(api, endpoint, request, controller.signal);
    reply.hijack();
    const { raw } = reply;
    const end = () => {
      controller.abort();
      raw.end();
    };
    api.held.add(end);
    raw.once("close", () => {
      api.held.delete(end);
      controller.abort();
    });
    raw.on("error", () => raw.destroy());
    raw.writeHead(200, {
      ...headersOf(reply),
      "content-type": "application/x-ndjson; charset=utf-8",
      "cache-control": "no-store",
    });
    follow(call, (line) => {
      if (raw.writableLength > MOST_UNREAD_BYTES) raw.destroy();
      else if (!controller.signal.aborted) raw.write(`${JSON.stringify(line)}\n`);
    });
  });
}

/** A reader this far behind is disconnected: it reconnects and gets the current state. */
const MOST_UNREAD_BYTES = 1024 * 1024;

function register(
  api: InternalApi,
  endpoint: Endpoint,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): void {
  if (endpoint.access !== "service") throw new Error(`${endpoint.name} is not for services`);
  const url = endpoint.path.replace(/\{(\w+)\}/g, ":$1");
  const { bodyLimit } = endpoint;
  api.http.route({
    ...{ method: endpoint.method, url, exposeHeadRoute: false, handler },
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
  });
}

function callOf<E>(
  api: InternalApi,
  endpoint: Endpoint,
  request: FastifyRequest,
  signal: AbortSignal,
): InternalCall<E> {
  const input = readInput(endpoint, request) as Pick<InternalCall<E>, "params" | "query" | "body">;
  const service = api.identityOf(request);
  const { instance_id, gateway_id = instance_id } = (input.body ?? {}) as Record<string, unknown>;
  if (gateway_id !== undefined && gateway_id !== service.instanceId) {
    throw new ApiError("service_identity_refused", {
      message: "The request names another process than its certificate.",
    });
  }
  return { ...input, correlationId: request.id, service, signal };
}

async function untilGone<T>(
  api: InternalApi,
  reply: FastifyReply,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const gone = () => controller.abort();
  const end = () => controller.abort(new ApiError("shutting_down", { headers: { "retry-after": "1" } }));
  reply.raw.once("close", gone);
  api.held.add(end);
  try {
    return await work(controller.signal);
  } finally {
    reply.raw.off("close", gone);
    api.held.delete(end);
  }
}

/** The headers that the listener's hooks have set: a hijacked reply does not send them by itself. */
function headersOf(reply: FastifyReply): Record<string, string> {
  const set = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([name, value]) => [name, String(value)]));
}
