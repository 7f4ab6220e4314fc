// One open stream of an agent: answers its calls with the handlers of the node-facing routes, and sends what the modules
// have for the node. The identity was checked when it opened; it is checked again with every call, regularly, and
// whenever the node's standing changes.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { type ApiFrame, type CallFrame, streamCloseCodes } from "@holdfast/contracts/node/stream";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { HttpServer } from "@holdfast/service/http";
import { judge, type PresentedCertificate } from "@holdfast/service/node-identity/certificate";
import type { WebSocket } from "ws";
import { readInput } from "../../api/input.ts";
import { isRevoked, type Standing } from "../../nodes/directory/standings.ts";
import { identityRefusal } from "../../nodes/identity/identity-refusal.ts";
import { MOST_AT_ONCE, type NodeIdentity } from "../identity-hook.ts";
import { type NodeApi, type NodeCall, type RegisteredCall, resultEndpoints, urlOf } from "../route.ts";
import { readFrame } from "./frames.ts";
import { createLiveness } from "./liveness.ts";
import type { NodeStream, StreamEnd } from "./uses.ts";

export type OpenStream = NodeStream & {
  /** Called regularly: checks the identity, and that the agent reads what it is sent. */
  check(): void;
  close(end: StreamEnd): void;
  /** Resolves when no call is in progress. */
  idle(): Promise<void>;
};

export type StreamOptions = {
  socket: WebSocket;
  identity: NodeIdentity;
  presented: PresentedCertificate;
  /** Calls are logged and counted as requests are. */
  reportRequest: HttpServer["reportRequest"];
  /** Turns an error of a lower layer into one for clients. */
  translateError(error: unknown): ApiError | undefined;
  now: () => number;
  onClosed(end: StreamEnd): void;
};

/** Other bodies than results, as on the routes. */
const MOST_BODY_BYTES = 256 * 1024;
/** An agent that reads nothing is disconnected. */
const MOST_UNSENT_BYTES = 16 * 1024 * 1024;

export function openStream(api: NodeApi, options: StreamOptions): OpenStream {
  const { socket, identity, presented, now } = options;
  const { id: nodeId, serial } = identity;
  const { log, directory } = api;
  const over = new AbortController();
  let end: StreamEnd | undefined;
  let calls = 0;
  let closing: StreamEnd | undefined;
  let whenIdle: (() => void) | undefined;
  let status = directory.known(nodeId)?.status;
  const validUntil = presented.kind === "node" ? presented.notAfter.getTime() : 0;

  const send = (frame: ApiFrame) => {
    if (end !== undefined) return;
    if (socket.bufferedAmount > MOST_UNSENT_BYTES) return close("unresponsive");
    // An answer, too: with its bytes unacknowledged, TCP sends no keepalives and gives up after a quarter of an hour.
    liveness.sent();
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
    for (const use of uses) use.closed?.(end ?? "connection_lost");
    options.onClosed(end ?? "connection_lost");
  };
  const refuse = (error: ApiError, correlationId: string) => {
    send(errorFrame(error, correlationId, now()));
    const details = { correlation_id: correlationId, node_id: nodeId, serial, reason: error.code };
    log.warn(details, "ended a node's stream");
    close("refused");
  };

  const refusal = (standing: Standing | undefined) => refusalOf(presented, { serial, standing, now: now() });

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
    const report = (endpoint: Endpoint, status: number) =>
      options.reportRequest({
        ...{ method: endpoint.method, route: urlOf(endpoint), status },
        correlationId: frame.correlation_id,
        milliseconds: performance.now() - startedAt,
      });
    try {
      const refused = refusal(directory.known(nodeId));
      if (refused) return refuse(refused, frame.correlation_id);
      if (!registered) throw new ApiError("route_not_found");
      const { id: streamId } = stream;
      const read = readCall(registered, frame, { identity, bytes });
      const answer = await registered.handle({ ...read, streamId, signal: () => over.signal });
      send({ id: frame.id, answer });
      for (const use of uses) use.answered?.(frame.call, answer);
      report(registered.endpoint, 200);
    } catch (error) {
      const known = explained(api, options, error, { ...frame, nodeId });
      send({ id: frame.id, ...errorFrame(known, frame.correlation_id, now()) });
      if (registered) report(registered.endpoint, known.status);
    }
  };

  const liveness = createLiveness({
    ping: () => {
      if (end === undefined) socket.ping();
    },
    onAnswered: () => {
      for (const use of uses) use.heard?.();
    },
  });
  socket.on("pong", liveness.heard);
  socket.on("message", (data, isBinary) => {
    liveness.heard();
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
    isHeard: liveness.isHeard,
    supersede() {
      if (calls === 0) close("superseded");
      else closing = "superseded";
    },
    check() {
      // Whatever else may be wrong with its identity is learned when it happens.
      const refused = now() > validUntil ? refusal(directory.known(nodeId)) : undefined;
      if (refused) return refuse(refused, uuidv7());
      if (!liveness.check()) close("unresponsive");
    },
    close,
    idle: () =>
      new Promise((resolve) => {
        whenIdle = resolve;
        if (calls === 0) resolve();
      }),
  };
  const unwatch = directory.onStanding(nodeId, onStanding);
  const uses = api.streamUses.map((use) => use(stream));
  // It may have changed since the certificate was judged.
  const known = directory.known(nodeId);
  if (known) onStanding(known);
  return stream;
}

/** Undefined: accepted. */
function refusalOf(
  presented: PresentedCertificate,
  { serial, standing, now }: { serial: string; standing: Standing | undefined; now: number },
): ApiError | undefined {
  const judged = judge(presented, { now, revoked: standing !== undefined && isRevoked(standing, serial) });
  if (!("refused" in judged)) return undefined;
  return judged.refused === "identity_revoked" ? identityRefusal(standing) : new ApiError(judged.refused);
}

function readCall(
  { endpoint }: RegisteredCall,
  frame: CallFrame,
  { identity, bytes }: { identity: NodeIdentity; bytes: number },
): Omit<NodeCall<unknown>, "signal"> {
  const takesResults = resultEndpoints.includes(endpoint);
  if (bytes > MOST_BODY_BYTES && !takesResults) throw new ApiError("body_too_large");
  const { id, orgId, serial, ingress, instanceId, bootId } = identity;
  const params = { ...frame.params, node_id: id };
  const input = readInput(endpoint, { params, query: {}, body: frame.body }) as Pick<
    NodeCall<unknown>,
    "params" | "query" | "body"
  >;
  const node = { id, orgId, serial, ingress };
  return { ...input, node, instanceId, bootId, correlationId: frame.correlation_id };
}

function explained(
  { log }: Pick<NodeApi, "log">,
  { translateError }: Pick<StreamOptions, "translateError">,
  error: unknown,
  { correlation_id, call, nodeId }: Pick<CallFrame, "correlation_id" | "call"> & { nodeId: string },
): ApiError {
  if (error instanceof ApiError) return error;
  const translated = translateError(error);
  if (translated) return translated;
  const details = { err: error, correlation_id, call, node_id: nodeId };
  log.error(details, "a call over a stream failed with an unhandled error");
  return new ApiError("internal_error");
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
