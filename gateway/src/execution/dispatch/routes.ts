// The dispatch routes of the internal listener. Failures of a step are answered with 200. A 503 means one thing only, that
// no agent could take the request: callers read every 503 so.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "@holdfast/contracts/errors";
import {
  DISPATCH_TOKEN_HEADER,
  DispatchBody,
  type DispatchedAsync,
  dispatchPaths,
  type ExecutionResult,
  executionTimeout,
  requestIdOf,
} from "@holdfast/contracts/execution/dispatch";
import type { NotChosen, RequestVerdict } from "@holdfast/contracts/internal/executions";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { isDeeperThan } from "@holdfast/kit/json-depth";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { ApiUnreachable } from "../../api-link/client.ts";
import type { Requests } from "./requests.ts";
import type { Ended, Results } from "./results.ts";
import type { Waiting } from "./waiting.ts";

export type DispatchOptions = {
  token: string;
  requests: Pick<Requests, "request">;
  results: Pick<Results, "read">;
  waiting: Pick<Waiting, "wait">;
  onOutcome(outcome: string): void;
  log: Log;
};

/** As far as it is used here. */
type Incoming = { id: string; headers: IncomingHttpHeaders };
type Timed = Incoming & { startedAt: number };

const MOST_LEVELS = 100;
/** How long a caller that does not wait for the result is kept while the api cannot be reached. */
const ASYNC_WITHIN_MS = 10_000;
const RESULTS_WITHIN_MS = 5_000;
/** The api ends a request at its deadline, and may need a moment for it. */
const GRACE_MS = 30_000;

export function addDispatchRoutes(app: HttpServer["app"], options: DispatchOptions): void {
  const { requests, results, waiting, onOutcome } = options;
  // As for requests, see service/src/http.ts: no field is secret, and the finished line is scanned all the same.
  const log = options.log.child({}, { redact: [] });
  const authorize = tokenCheck(options.token);
  // Before the body is read.
  const guarded = {
    onRequest: (request: Incoming, _reply: unknown, done: () => void) => {
      authorize(request);
      done();
    },
  };

  const dispatch = (request: Incoming, body: DispatchBody, withinMs: number) =>
    requests.request(
      { body, correlation_id: request.id },
      { bytes: Number(request.headers["content-length"] ?? 0), withinMs },
    );
  const ended = (request: Timed, body: DispatchBody, outcome: string) => {
    onOutcome(outcome);
    const { organizationId: org_id, kind } = body;
    const ms = Math.round(performance.now() - request.startedAt);
    log.info({ correlation_id: request.id, request_id: requestIdOf(body), org_id, kind, outcome, ms }, "dispatch");
  };
  const refuse = (request: Timed, body: DispatchBody, error: ApiError): never => {
    ended(request, body, error.code);
    throw error;
  };

  app.post(dispatchPaths.dispatch, guarded, async (incoming, reply): Promise<ExecutionResult> => {
    const request = timed(incoming);
    const body = readBody(incoming.body);
    const timeoutMs = body.timeoutMs ?? executionTimeout.usual;
    // Before the request is made: its end must not pass unnoticed.
    const waiter = waiting.wait(requestIdOf(body), timeoutMs + (body.waitMs ?? 0) + GRACE_MS);
    reply.raw.once("close", waiter.leave);
    try {
      // Not what ends first under this id: only the api knows that it is the same organization's request.
      const first = await Promise.race([dispatch(request, body, timeoutMs), waiter.abandoned]);
      const early = "state" in first ? endOf(first) : first;
      if (early instanceof ApiError) return refuse(request, body, early);
      const outcome = early ?? (await waiter.outcome);
      const refusal = outcome.no_agent && noAgent(outcome.no_agent);
      if (refusal) return refuse(request, body, refusal);
      ended(request, body, outcome.result.status);
      return outcome.result;
    } catch (error) {
      if (!(error instanceof ApiUnreachable)) throw error;
      ended(request, body, "gateway_unavailable");
      return { status: "failed", error: "GATEWAY_UNAVAILABLE" };
    } finally {
      waiter.leave();
    }
  });

  app.post(dispatchPaths.dispatchAsync, guarded, async (incoming, reply): Promise<DispatchedAsync> => {
    const request = timed(incoming);
    const body = readBody(incoming.body);
    const requestId = requestIdOf(body);
    const verdict = await dispatch(request, body, ASYNC_WITHIN_MS).catch((error: unknown) => {
      return refuse(
        request,
        body,
        error instanceof ApiUnreachable ? new ApiError("gateway_dispatch_failed") : asApiError(error),
      );
    });
    const early = endOf(verdict);
    if (early instanceof ApiError) return refuse(request, body, early);
    const cached = early !== undefined || ("known" in verdict && verdict.known);
    ended(request, body, cached ? "cached" : "dispatched");
    reply.code(cached ? 200 : 201);
    return cached ? { requestId, dispatched: false, cached } : { requestId, dispatched: true };
  });

  app.get<{ Params: { requestId: string } }>(`${dispatchPaths.results}/:requestId`, guarded, async (request) => {
    const { requestId } = request.params;
    const read = await results.read(requestId, RESULTS_WITHIN_MS).catch((error: unknown) => {
      if (!(error instanceof ApiUnreachable)) throw new ApiError("bad_request");
      // Whoever polls continues: the request goes on meanwhile.
      throw new ApiError("result_not_ready", {
        message: "The gateway cannot reach the API, which has the results.",
      });
    });
    if (!read) throw new ApiError("result_not_ready");
    return read.result;
  });

  app.addHook("onRequest", (_request, reply, done) => {
    reply.header("cache-control", "no-store");
    done();
  });
}

function timed({ id, headers }: Incoming): Timed {
  return { id, headers, startedAt: performance.now() };
}

/** The end of a request that never started or was over before; undefined: it is under way. */
function endOf(verdict: RequestVerdict): Ended | ApiError | undefined {
  switch (verdict.state) {
    case "ended":
      return { result: verdict.result, no_agent: null };
    case "no_agent":
      return noAgent(verdict.not_chosen);
    case "refused":
      return new ApiError("bad_request", { message: verdict.message, nextStep: verdict.next_step });
    case "assigned":
    case "pending":
      return undefined;
    default:
      return exhaustive(verdict);
  }
}

/** With why each agent was not chosen. */
function noAgent(notChosen: readonly NotChosen[]): ApiError {
  const message = notChosen.length === 0 ? "The organization has no agents." : undefined;
  return new ApiError("no_agent_available", { ...(message ? { message } : {}), details: { agents: notChosen } });
}

function readBody(body: unknown): DispatchBody {
  const read = DispatchBody.safeParse(body);
  if (!read.success) {
    const fields = read.error.issues.map(({ path, message }) => ({ field: path.join("."), problem: message }));
    throw new ApiError("bad_request", { details: { fields } });
  }
  if (isDeeperThan(read.data.payload, MOST_LEVELS)) {
    const fields = [{ field: "payload", problem: `is nested more than ${MOST_LEVELS} levels` }];
    throw new ApiError("bad_request", { details: { fields } });
  }
  return read.data;
}

function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("internal_error");
}

/** In constant time, whatever was sent. */
function tokenCheck(token: string): (request: Incoming) => void {
  const expected = sha256(token);
  return ({ headers }) => {
    const sent = headers[DISPATCH_TOKEN_HEADER];
    if (typeof sent !== "string" || !timingSafeEqual(sha256(sent), expected)) throw new ApiError("unauthorized");
  };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
