// One open stream of an agent: answers its calls with the handlers of the node-facing routes, and sends what the modules
// have for the node. The identity was checked when it opened; it is checked again with every call, regularly, and
// whenever the node's standing changes.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import {
  type ApiFrame,
  type CallFrame,
  type CapacityFrame,
  streamCloseCodes,
} from "@holdfast/contracts/node/stream";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Metrics } from "@holdfast/service/metrics";
import { judge, type PresentedCertificate } from "@holdfast/service/node-identity/certificate";
import type { WebSocket } from "ws";
import { readInput } from "../../api/input.ts";
import { isRevoked, type Standing } from "../../nodes/directory/standings.ts";
import { identityRefusal } from "../../nodes/identity/identity-refusal.ts";
import { MOST_AT_ONCE, type NodeIdentity } from "../identity-hook.ts";
import { type NodeApi, type NodeCall, type RegisteredCall, resultEndpoints, urlOf } from "../route.ts";
import { readFrame } from "./frames.ts";

/** Why a stream has ended. */
export type StreamEnd =
  /** The agent has stopped, or has opened another stream. */
  | "closed_by_agent"
  | "superseded"
  | "connection_lost"
  /** It did not respond to a ping. */
  | "unresponsive"
  /** The node's identity is no longer accepted, or the agent does not speak this protocol. */
  | "refused"
  | "server_stopped";

export type NodeStream = {
  readonly id: string;
  readonly node: NodeIdentity;
  send(frame: ApiFrame): void;
  /** The same agent has a newer one: closes when the calls in progress are answered. */
  supersede(): void;
};

/** What a module does with a stream. */
export type StreamUse = {
  capacity?(capacity: CapacityFrame["capacity"]): void;
  /** After the answer to a call was sent. */
  answered?(call: string, answer: unknown): void;
  closed?(end: StreamEnd): void;
};
export type UseStream = (stream: NodeStream) => StreamUse;

export type OpenStream = NodeStream & {
  /** Called regularly: checks the identity, and that the agent reads what it is sent. */
  check(): void;
  close(end: StreamEnd): void;
  /** Whether the agent returns the nonce in time. */
  challenge(nonce: Buffer): Promise<boolean>;
  /** Resolves when no call is in progress. */
  idle(): Promise<void>;
};

export type StreamOptions = {
  socket: WebSocket;
  identity: NodeIdentity;
  presented: PresentedCertificate;
  metrics: Pick<Metrics, "observeRequest">;
  /** Turns an error of a lower layer into one for clients. */
  translateError(error: unknown): ApiError | undefined;
  now: () => number;
  onClosed(end: StreamEnd): void;
};

/** Other bodies than results, as on the routes. */
const MOST_BODY_BYTES = 256 * 1024;
/** An agent that reads nothing is disconnected. */
const MOST_UNSENT_BYTES = 16 * 1024 * 1024;
/** After something was sent, a sign of life is expected: a dead connection with unsent data notices nothing by itself. */
const PING_AFTER_MS = 10_000;
const UNRESPONSIVE_AFTER_MS = 30_000;
const CHALLENGE_WITHIN_MS = 10_000;

export function openStream(api: NodeApi, options: StreamOptions): OpenStream {
  const { socket, identity, presented, now } = options;
  const { id: nodeId, serial } = identity;
  const { log, directory } = api;
  const over = new AbortController();
  let end: StreamEnd | undefined;
  let calls = 0;
  let closing: StreamEnd | undefined;
  let whenIdle: (() => void) | undefined;
  /** Since when no frame has come from the agent after something was sent; undefined: one has. */
  let unheardSince: number | undefined;
  let status = directory.known(nodeId)?.status;
  const validUntil = presented.kind === "node" ? presented.notAfter.getTime() : 0;
  /** By their nonces. */
  const challenges = new Map<string, (answered: boolean) => void>();

  const send = (frame: ApiFrame) => {
    if (end !== undefined) return;
    if (socket.bufferedAmount > MOST_UNSENT_BYTES) return close("unresponsive");
    // An answer goes to an agent that has just been heard.
    if (!("id" in frame)) unheardSince ??= performance.now();
    socket.send(JSON.stringify(frame));
  };
  const close = (reason: StreamEnd) => {
    if (end !== undefined) return;
    end = reason;
    const code = closeCodes[reason];
    if (code === undefined) socket.terminate();
    else socket.close(code, reason);
    ended();
  };
  const ended = () => {
    over.abort();
    unwatch();
    for (const settle of challenges.values()) settle(false);
    for (const use of uses) use.closed?.(end ?? "connection_lost");
    options.onClosed(end ?? "connection_lost");
  };
  const refuse = (error: ApiError, correlationId: string) => {
    send(errorFrame(error, correlationId, now()));
    log.warn(
      { correlation_id: correlationId, node_id: nodeId, serial, reason: error.code },
      "ended a node's stream",
    );
    close("refused");
  };

  /** Undefined: accepted. */
  const refusal = (standing: Standing | undefined): ApiError | undefined => {
    const judged = judge(presented, {
      now: now(),
      revoked: standing !== undefined && isRevoked(standing, serial),
    });
    if (!("refused" in judged)) return undefined;
    return judged.refused === "identity_revoked" ? identityRefusal(standing) : new ApiError(judged.refused);
  };

  const onStanding = (standing: Standing) => {
    const refused = refusal(standing);
    if (refused) return refuse(refused, uuidv7());
    if (standing.status === status) return;
    status = standing.status;
    send({ standing: { status, reason: standing.reason } });
  };

  const call = async (frame: CallFrame, bytes: number) => {
    const startedAt = performance.now();
    const registered = api.calls.get(frame.call);
    try {
      const refused = refusal(directory.known(nodeId));
      if (refused) return refuse(refused, frame.correlation_id);
      if (!registered) throw new ApiError("route_not_found");
      const answer = await registered.handle(callOf(registered, frame, bytes));
      send({ id: frame.id, answer });
      for (const use of uses) use.answered?.(frame.call, answer);
      observe(registered.endpoint, 200, startedAt);
    } catch (error) {
      const known = explained(error, frame);
      send({ id: frame.id, ...errorFrame(known, frame.correlation_id, now()) });
      if (registered) observe(registered.endpoint, known.status, startedAt);
    }
  };
  const callOf = ({ endpoint }: RegisteredCall, frame: CallFrame, bytes: number): NodeCall<unknown> => {
    const takesResults = resultEndpoints.includes(endpoint);
    if (bytes > MOST_BODY_BYTES && !takesResults) throw new ApiError("body_too_large");
    const params = { ...frame.params, node_id: nodeId };
    const input = readInput(endpoint, { params, query: {}, body: frame.body }) as Pick<
      NodeCall<unknown>,
      "params" | "query" | "body"
    >;
    const { orgId, instanceId, bootId } = identity;
    return {
      ...input,
      ...{ node: { id: nodeId, orgId, serial }, instanceId, bootId, streamId: stream.id },
      correlationId: frame.correlation_id,
      signal: () => over.signal,
    };
  };
  const explained = (error: unknown, frame: CallFrame): ApiError => {
    if (error instanceof ApiError) return error;
    const translated = options.translateError(error);
    if (translated) return translated;
    const details = { err: error, correlation_id: frame.correlation_id, call: frame.call, node_id: nodeId };
    log.error(details, "a call over a stream failed with an unhandled error");
    return new ApiError("internal_error");
  };
  const observe = (endpoint: Endpoint, status: number, startedAt: number) =>
    options.metrics.observeRequest({
      ...{ method: endpoint.method, route: urlOf(endpoint), status },
      seconds: (performance.now() - startedAt) / 1000,
    });

  socket.on("message", (data, isBinary) => {
    unheardSince = undefined;
    const bytes = (data as Buffer).length;
    const frame = isBinary ? undefined : readFrame(data.toString());
    if (frame === undefined) {
      const problem = { field: "frame", problem: "not a frame of this protocol" };
      return refuse(new ApiError("invalid_request", { details: { fields: [problem] } }), uuidv7());
    }
    if ("capacity" in frame) {
      for (const use of uses) use.capacity?.(frame.capacity);
      return;
    }
    calls += 1;
    // No more than that is read at once, however much the agent sends.
    if (calls >= MOST_AT_ONCE) socket.pause();
    void call(frame, bytes).finally(() => {
      calls -= 1;
      if (socket.isPaused) socket.resume();
      if (calls > 0) return;
      if (closing) close(closing);
      whenIdle?.();
    });
  });
  socket.on("pong", (data) => {
    unheardSince = undefined;
    challenges.get(data.toString("hex"))?.(true);
  });
  socket.on("error", () => undefined);
  socket.on("close", (code) => {
    if (end !== undefined) return;
    end = code === CLOSE_NORMAL ? "closed_by_agent" : "connection_lost";
    ended();
  });

  const stream: OpenStream = {
    id: uuidv7(),
    node: identity,
    send,
    supersede() {
      if (calls === 0) close("superseded");
      else closing = "superseded";
    },
    check() {
      // Whatever else may be wrong with its identity is learned when it happens.
      const refused = now() > validUntil ? refusal(directory.known(nodeId)) : undefined;
      if (refused) return refuse(refused, uuidv7());
      if (unheardSince === undefined) return;
      const silentMs = performance.now() - unheardSince;
      if (silentMs > UNRESPONSIVE_AFTER_MS) close("unresponsive");
      else if (silentMs > PING_AFTER_MS) socket.ping();
    },
    close,
    challenge: (nonce) =>
      new Promise((resolve) => {
        const key = nonce.toString("hex");
        const settle = (answered: boolean) => {
          clearTimeout(timer);
          challenges.delete(key);
          resolve(answered);
        };
        const timer = setTimeout(() => settle(false), CHALLENGE_WITHIN_MS).unref();
        challenges.set(key, settle);
        if (end === undefined) socket.ping(nonce);
        else settle(false);
      }),
    idle: () =>
      new Promise((resolve) => {
        whenIdle = resolve;
        if (calls === 0) resolve();
      }),
  };
  const unwatch = directory.onStanding(nodeId, onStanding);
  const uses = api.streamUses.map((use) => use(stream));
  return stream;
}

const CLOSE_NORMAL = 1000;

/** Undefined: the peer does not respond, or is gone. */
const closeCodes: Record<StreamEnd, number | undefined> = {
  closed_by_agent: CLOSE_NORMAL,
  superseded: streamCloseCodes.superseded,
  connection_lost: undefined,
  unresponsive: undefined,
  refused: streamCloseCodes.refused,
  server_stopped: streamCloseCodes.stopping,
};

function errorFrame(error: ApiError, correlationId: string, at: number) {
  const retryAfter = Number(error.headers["retry-after"]);
  return {
    status: error.status,
    error: error.envelope(correlationId),
    ...(Number.isFinite(retryAfter) ? { retry_after: retryAfter } : {}),
    at,
  };
}
