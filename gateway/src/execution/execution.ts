// Executions at a gateway, put together: agents and their sockets on one side, workers that dispatch on the other. Nothing
// here is durable: every request is a row at the api (ADR 46).

import { setTimeout as wait } from "node:timers/promises";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { RequestVerdict } from "@holdfast/contracts/internal/executions";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { ApiLink } from "../api-link/link.ts";
import type { AdmittedRoute } from "../listeners/public-listener.ts";
import { createAgents } from "./agents/agents.ts";
import { createRequests } from "./dispatch/requests.ts";
import { createResults } from "./dispatch/results.ts";
import { addDispatchRoutes } from "./dispatch/routes.ts";
import { createWaiting } from "./dispatch/waiting.ts";
import { executionRoutes } from "./public-route.ts";

export type Executions = {
  publicRoutes: readonly AdmittedRoute[];
  addInternalRoutes(app: HttpServer["app"]): void;
  onNews(news: ServiceNews): void;
  /** News may have been missed. */
  resume(): void;
  /** Agents move to other gateways; what is under way here is finished, for at most that long. */
  drain(withinMs: number): Promise<void>;
  /** Callers that still wait get GATEWAY_SHUTDOWN, then all sockets are closed. */
  stop(withinMs: number): Promise<void>;
};

const LOOK_MS = 50;

export function createExecutions(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  /** Undefined: nobody can dispatch here. */
  dispatchToken: string | undefined;
  agentStaleMs: number;
  log: Log;
  metrics: Metrics;
}): Executions {
  const { api, dispatchToken, log, metrics } = options;
  const results = createResults(api);
  const waiting = createWaiting(results);
  const agents = createAgents({
    api,
    staleMs: options.agentStaleMs,
    onResult(requestId, result, isCertain) {
      if (isCertain) waiting.settle(requestId, result);
      else waiting.check(requestId);
    },
    onClosed: metrics.countByCode(
      "holdfast_gateway_agents_closed_total",
      "Ended connections of agents, by reason",
    ),
    onDropped: metrics.count(
      "holdfast_gateway_dropped_output_total",
      "Pieces of output of steps that were dropped",
    ),
    onInvalid: metrics.count("holdfast_gateway_invalid_frames_total", "Frames of agents that were ignored"),
    log,
  });
  const requests = createRequests({
    api,
    onVerdict(verdict: RequestVerdict) {
      if (verdict.state !== "assigned") return;
      if (verdict.offer) agents.deliver(verdict.offer);
      // The answer to the first request may have been lost, and its offer with it.
      else if (verdict.known) agents.confirm(verdict);
    },
  });
  const onOutcome = metrics.countByCode(
    "holdfast_gateway_dispatches_total",
    "Dispatches of workers, by what was answered",
  );
  metrics.gaugeByReason("holdfast_gateway_agents", "Agents that run steps at this gateway, by kind", async () => ({
    ...agents.counts(),
    waiting_callers: waiting.size(),
  }));

  return {
    publicRoutes: executionRoutes({ api, agents }),
    addInternalRoutes(app) {
      if (dispatchToken === undefined) return;
      addDispatchRoutes(app, { token: dispatchToken, requests, results, waiting, onOutcome, log });
    },
    onNews(news) {
      agents.onNews(news);
      if (news.type === "execution_ended") waiting.check(news.request_id);
    },
    resume: agents.reopenAll,
    async drain(withinMs) {
      agents.drain();
      const until = Date.now() + withinMs;
      while (Date.now() < until && !(agents.isIdle() && waiting.size() === 0)) await wait(LOOK_MS);
    },
    async stop(withinMs) {
      waiting.stop();
      requests.stop();
      await agents.stop(withinMs);
      results.stop();
    },
  };
}
