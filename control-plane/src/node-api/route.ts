// Joins a node-facing endpoint with its handler. Who calls comes from the identity hook alone. A
// request ends at once, whatever its handler does, when the node is revoked; held ones also when the
// server stops.

import type { AnswerOf, BodyOf, Endpoint, ParamsOf, QueryOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { reportResult, reportResults } from "@holdfast/contracts/node-endpoints";
import { MOST_RESULTS_BODY_BYTES } from "@holdfast/contracts/node-limits";
import type { Log } from "@holdfast/service/log";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readInput } from "../api/input.ts";
import { isRevoked, type NodeDirectory } from "../nodes/directory.ts";
import type { NodeIdentity } from "./identity-hook.ts";

/** The node-facing listener, as its routes see it. */
export type NodeApi = {
  http: FastifyInstance;
  directory: NodeDirectory;
  log: Log;
  identityOf(request: FastifyRequest): NodeIdentity;
  /** How to end each request that is being held; without a reason it is answered with what there is. */
  held: Set<(reason?: ApiError) => void>;
  /** About to stop: nothing is held any more. */
  isDraining(): boolean;
};

export type NodeCall<E> = {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  correlationId: string;
  node: { id: string; orgId: string; serial: string };
  instanceId: string;
  bootId: string;
  /** Aborted when the connection closes, when the node is revoked, and, for a GET, when the server is about to stop. */
  signal: AbortSignal;
};

/** Results are the only large thing that agents send. */
const resultEndpoints: readonly Endpoint[] = [reportResult, reportResults];

/** As it is registered. */
export function urlOf(endpoint: Endpoint): string {
  return endpoint.path.replace(/\{(\w+)\}/g, ":$1");
}

export function nodeRoute<E extends Endpoint>(
  api: NodeApi,
  endpoint: E,
  handle: (call: NodeCall<E>) => Promise<AnswerOf<E>>,
): void {
  if (endpoint.access !== "node") throw new Error(`${endpoint.name} is not for nodes`);
  if (!endpoint.path.includes("/nodes/{node_id}/")) throw new Error(`${endpoint.name} names no node in its path`);
  const takesResults = resultEndpoints.includes(endpoint);
  api.http.route({
    method: endpoint.method,
    url: urlOf(endpoint),
    // A HEAD of a poll would take tasks and show them to nobody.
    exposeHeadRoute: false,
    ...(takesResults ? { bodyLimit: MOST_RESULTS_BODY_BYTES, errorHandler: sayResultTooLarge } : {}),
    handler: async (request, reply) => {
      const answer = await untilEnded(api, endpoint, { request, reply }, (signal) =>
        handle(callOf<E>(api, endpoint, request, signal)),
      );
      reply.header("cache-control", "no-store").type("application/json; charset=utf-8");
      return reply.send(JSON.stringify(answer));
    },
  });
}

function callOf<E>(api: NodeApi, endpoint: Endpoint, request: FastifyRequest, signal: AbortSignal): NodeCall<E> {
  const input = readInput(endpoint, request) as Pick<NodeCall<E>, "params" | "query" | "body">;
  const { instanceId, bootId, ...node } = api.identityOf(request);
  return { ...input, correlationId: request.id, node, instanceId, bootId, signal };
}

async function untilEnded<T>(
  api: NodeApi,
  endpoint: Endpoint,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { id, serial } = api.identityOf(request);
  const controller = new AbortController();
  const ended = Promise.withResolvers<never>();
  const end = (reason?: ApiError) => {
    controller.abort(reason);
    if (reason) ended.reject(reason);
  };
  const onClose = () => {
    // Nobody reads this answer; it only ends the request.
    if (!reply.raw.writableEnded) end(new ApiError("shutting_down", { message: "The agent has gone." }));
  };
  const onRevoked = () => end(new ApiError("identity_revoked"));
  const unwatch = api.directory.onRevoked({ id, serial }, onRevoked);
  reply.raw.once("close", onClose);
  if (endpoint.method === "GET") {
    if (api.isDraining()) end();
    else api.held.add(end);
  }
  try {
    // The body took its time: the node may have been revoked since the hook ran.
    const standing = api.directory.known(id);
    if (standing && isRevoked(standing, serial)) throw new ApiError("identity_revoked");
    return await Promise.race([work(controller.signal), ended.promise]);
  } finally {
    unwatch();
    reply.raw.off("close", onClose);
    api.held.delete(end);
  }
}

/** Fastify's own complaint in the words of the task path; anything else goes on to the general handler. */
function sayResultTooLarge(error: FastifyError): never {
  if (error.code !== "FST_ERR_CTP_BODY_TOO_LARGE") throw error;
  // The connection stays: closed while the agent still sends, the answer might not arrive.
  throw new ApiError("result_too_large", { details: { limit_bytes: MOST_RESULTS_BODY_BYTES } });
}
