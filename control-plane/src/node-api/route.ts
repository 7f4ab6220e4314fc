// Joins a node-facing endpoint with its handler. The caller's identity comes only from the identity hook. A
// request ends at once, whatever its handler does, when the node is revoked; a held request also ends when the
// node's status changes, and when the server stops. Agents call the same handlers over their streams (streams/).

import type { AnswerOf, BodyOf, Endpoint, ParamsOf, QueryOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { reportResult, reportResults } from "@holdfast/contracts/node/endpoints";
import { MOST_RESULTS_BODY_BYTES } from "@holdfast/contracts/node/limits";
import type { DiagnosticRecord, Heartbeat, HeartbeatAnswer, Outcome } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readInput } from "../api/input.ts";
import { isRevoked, type NodeDirectory } from "../nodes/directory/standings.ts";
import { identityRefusal } from "../nodes/identity/identity-refusal.ts";
import type { NodeRefusal } from "../nodes/identity/refusals.ts";
import type { ForeignCertificate, NodeIdentity } from "./identity-hook.ts";
import type { UseStream } from "./streams/uses.ts";

/** The node-facing listener, as its routes see it. */
export type NodeApi = {
  http: FastifyInstance;
  directory: NodeDirectory;
  log: Log;
  identityOf(request: FastifyRequest): NodeIdentity;
  /** How to end each request that is being held; without a reason it returns what is available. */
  held: Map<EndHeld, { nodeId: string }>;
  /** The server is about to stop: requests are no longer held. */
  isDraining(): boolean;
  /** By the names of their endpoints, for streams. */
  calls: Map<string, RegisteredCall>;
  /** Called with every stream that opens. */
  streamUses: UseStream[];
  /** Called when an agent's connection closes while its poll is held. */
  pollLostListeners: ((node: NodeIdentity) => void)[];
  observers: NodeObserver[];
  /** What other modules add to the response to a heartbeat. */
  heartbeatParts: HeartbeatPart[];
};

export type HeartbeatPart = (
  node: { id: string; orgId: string },
  report: Omit<Heartbeat, "sent_at">,
) => Promise<Partial<HeartbeatAnswer>>;

/** The signal's reason where a held request ends so that the agent sends a heartbeat. */
export const heartbeatWanted = Symbol("heartbeat wanted");
export type EndHeld = (reason?: ApiError | typeof heartbeatWanted) => void;

/** Learns what agents report, after it was stored. */
export type NodeObserver = {
  heartbeat?(report: {
    nodeId: string;
    heartbeat: Omit<Heartbeat, "sent_at">;
    at: Date;
    correlationId: string;
    instanceId: string;
    bootId: string;
  }): void;
  diagnostics?(report: { nodeId: string; records: readonly DiagnosticRecord[]; sentAt: string | undefined }): void;
  results?(report: { nodeId: string; outcomes: readonly Outcome[]; correlationId: string }): void;
  /** A request was refused because of its certificate. */
  refusal?(refusal: NodeRefusal): void;
  /** The same of a certificate that our CA has not signed. */
  foreign?(claim: ForeignCertificate): void;
};

export type RegisteredCall = {
  endpoint: Endpoint;
  handle(call: NodeCall<unknown>): Promise<unknown>;
};

export type NodeCall<E> = {
  params: ParamsOf<E>;
  query: QueryOf<E>;
  body: BodyOf<E>;
  correlationId: string;
  node: { id: string; orgId: string; serial: string; ingress: string | null };
  instanceId: string;
  bootId: string;
  /** Of the stream that it came over; undefined: a request of its own. */
  streamId?: string;
  /** Aborted when the connection closes or the node is revoked; of a GET also when its status changes or the server stops. */
  signal: () => AbortSignal;
};

/** Results are the only large bodies that agents send. */
export const resultEndpoints: readonly Endpoint[] = [reportResult, reportResults];

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
  api.calls.set(endpoint.name, { endpoint, handle: handle as RegisteredCall["handle"] });
  api.http.route({
    method: endpoint.method,
    url: urlOf(endpoint),
    // A HEAD request to a poll would claim tasks without returning them.
    exposeHeadRoute: false,
    ...(takesResults ? { bodyLimit: MOST_RESULTS_BODY_BYTES, errorHandler: sayResultTooLarge } : {}),
    handler: (request, reply) => {
      untilEnded(api, endpoint, { request, reply }, (signal) =>
        handle(callOf<E>(api, endpoint, request, signal)),
      ).then(
        (answer) => {
          reply.header("cache-control", "no-store").header("content-type", "application/json; charset=utf-8");
          reply.send(JSON.stringify(answer));
        },
        (error: unknown) => reply.send(error),
      );
    },
  });
}

function callOf<E>(
  api: NodeApi,
  endpoint: Endpoint,
  request: FastifyRequest,
  signal: () => AbortSignal,
): NodeCall<E> {
  const { params, query, body } = readInput(endpoint, request) as Pick<NodeCall<E>, "params" | "query" | "body">;
  const { id, orgId, serial, ingress, instanceId, bootId } = api.identityOf(request);
  const node = { id, orgId, serial, ingress };
  return { params, query, body, correlationId: request.id, node, instanceId, bootId, signal };
}

/** Whoever probes the way is not the agent: that it disconnects says nothing about the node. */
const isProbe = ({ query }: FastifyRequest) => Object.hasOwn((query ?? {}) as object, "probe");

/** One promise and no more than a handful of objects: thousands of these are held. */
function untilEnded<T>(
  api: NodeApi,
  endpoint: Endpoint,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  work: (signal: () => AbortSignal) => Promise<T>,
): Promise<T> {
  const { id, serial } = api.identityOf(request);
  return new Promise<T>((resolve, reject) => {
    let controller: AbortController | undefined;
    let over: { reason: Parameters<EndHeld>[0] } | undefined;
    const signal = () => {
      controller ??= new AbortController();
      if (over) controller.abort(over.reason);
      return controller.signal;
    };
    const end: EndHeld = (reason) => {
      over ??= { reason };
      controller?.abort(reason);
      if (reason instanceof ApiError) fail(reason);
    };
    const onClose = () => {
      if (reply.raw.writableEnded) return;
      if (endpoint.method === "GET" && !isProbe(request)) {
        for (const listener of api.pollLostListeners) listener(api.identityOf(request));
      }
      // Nobody reads this response; it only ends the request.
      end(new ApiError("shutting_down", { message: "The agent has disconnected." }));
    };
    const settle = () => {
      unwatch();
      reply.raw.off("close", onClose);
      api.held.delete(end);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
    };
    const atStart = api.directory.known(id);
    const unwatch = api.directory.onStanding(id, (standing) => {
      if (isRevoked(standing, serial)) end(identityRefusal(standing));
      // A held poll returns now: the agent learns at once that it is quarantined, or active again.
      else if (endpoint.method === "GET" && standing.status !== atStart?.status) end();
    });
    reply.raw.once("close", onClose);
    if (endpoint.method === "GET") {
      if (api.isDraining()) end();
      else {
        api.held.set(end, { nodeId: id });
        api.log.trace({ node_id: id }, "poll held");
      }
    }
    try {
      // Reading the body takes time: the node may have been revoked since the hook ran.
      if (atStart && isRevoked(atStart, serial)) throw identityRefusal(atStart);
      work(signal).then((answer) => {
        settle();
        resolve(answer);
      }, fail);
    } catch (error) {
      fail(error);
    }
  });
}

/** Translates Fastify's own error for the task path; all others go to the general handler. */
function sayResultTooLarge(error: FastifyError): never {
  if (error.code !== "FST_ERR_CTP_BODY_TOO_LARGE") throw error;
  // The connection stays: closed while the agent still sends, the answer might not arrive.
  throw new ApiError("result_too_large", { details: { limit_bytes: MOST_RESULTS_BODY_BYTES } });
}
