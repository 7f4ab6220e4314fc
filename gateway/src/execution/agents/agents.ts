// The agents that are connected to this gateway: their sessions, what the api decides about them, and how they end.

import { setTimeout as wait } from "node:timers/promises";
import { ApiError } from "@holdfast/contracts/errors";
import { type ExecutionResult, MOST_DISPATCH_BYTES } from "@holdfast/contracts/execution/dispatch";
import { executionCloseCodes } from "@holdfast/contracts/execution/frames";
import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import { type ExecutionEvent, type ExecutionOffer, takeAgentWork } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import type { WebSocketServer } from "ws";
import type { ApiLink } from "../../api-link/link.ts";
import { createConversation } from "./conversation.ts";
import { hasExitCode } from "./frames.ts";
import { createOffers } from "./offers.ts";
import { createOpening } from "./opening.ts";
import { createReports, type EventVerdict } from "./reports.ts";
import { type AdmittedAgent, type AgentConnection, AgentSession, about } from "./session.ts";
import { type AgentSessions, agentSessions } from "./sessions.ts";
import { agentSockets } from "./sockets.ts";
import { startSweep } from "./sweep.ts";
import { startTouch } from "./touch.ts";

export type Agents = {
  server: WebSocketServer;
  accept(connected: AgentConnection, agent: AdmittedAgent): void;
  deliver(offer: ExecutionOffer): void;
  /** It was given to this agent, which should have it: checks with the api if it is connected here and does not. */
  confirm(given: { request_id: string; agent_id: string }): void;
  onNews(news: ServiceNews): void;
  /** News may have been missed. */
  reopenAll(): void;
  counts(): { current: number; older: number; in_flight: number; unsent_events: number };
  /** Requests agents to move to another gateway. */
  drain(): void;
  isIdle(): boolean;
  /** Passes on what has arrived, and closes. */
  stop(withinMs: number): Promise<void>;
};

export type AgentsOptions = {
  api: Pick<ApiLink, "ask" | "instanceId">;
  staleMs: number;
  /** The api has accepted this result. `isCertain`: it has stored it as it is. */
  onResult(requestId: string, result: ExecutionResult, isCertain: boolean): void;
  onClosed(reason: string): void;
  onDropped(): void;
  onInvalid(): void;
  log: Log;
};

export function createAgents(options: AgentsOptions): Agents {
  const { api, log } = options;
  const sessions = agentSessions();
  let isDraining = false;
  const sockets = agentSockets({ onFrame: (...frame) => conversation.onFrame(...frame), onClose });
  const reports = createReports({ api, onVerdict, onDropped: options.onDropped, log });
  const offers = createOffers({ sessions, reports, log });
  const opening = createOpening({
    api,
    isDraining: () => isDraining,
    onOpened(session, { offers: offered, stop }) {
      // It may have begun to drain while it was opened, and the api has taken the older state last.
      if (session.isDraining || isDraining) touch.now();
      for (const one of stop) cancel(session, one);
      offers.deliverKept(session);
      for (const offer of offered) offers.deliver(offer);
    },
    onRefused: (session) => revoke(session, "opening", log),
    log,
  });
  const stopSweep = startSweep({
    sessions,
    staleMs: options.staleMs,
    onEnded: (session, reason) => log.info({ ...about(session), reason }, "closes the connection of an agent"),
  });
  const touch = startTouch({
    api,
    sessions,
    isDraining: () => isDraining,
    onRevoked: (session) => revoke(session, "touch", log),
    onGap: reopenAll,
  });

  const conversation = createConversation({
    reports,
    onHello(session) {
      void opening.open(session);
      if (isDraining && session.speaksAll) session.send({ type: "drain" });
    },
    onDraining: touch.now,
    onInvalid: options.onInvalid,
    log,
  });

  function onVerdict(event: ExecutionEvent, { verdict, stop }: EventVerdict, bytes: number) {
    const { request_id, generation } = event;
    const session = sessions.get(event.session_id);
    if (event.type === "result") {
      const held = session?.held?.get(request_id);
      session?.release(request_id);
      if (session?.speaksAll && generation !== null)
        session.send({ type: "result_ack", requestId: request_id, generation, verdict });
      const isCertain =
        verdict === "accepted" &&
        bytes <= MOST_CERTAIN_BYTES &&
        held?.stopping !== true &&
        (event.result.status === "failed" || held?.needsExitCode === false || hasExitCode(event.result));
      // Of an unknown request nothing follows: it may be another agent's.
      if (verdict !== "unknown") options.onResult(request_id, event.result, isCertain);
    } else if (event.type === "declined") {
      // Not before the api has it: until then a session that is opened again would get it again, and another agent too.
      if (session?.held?.get(request_id)?.generation === generation) session?.release(request_id);
    } else if (stop !== null && session && generation !== null) {
      cancel(session, { request_id, generation, reason: stop });
    }
  }

  function onClose(session: AgentSession, code: number) {
    session.isClosed = true;
    sessions.remove(session);
    const reason = session.endedBy ?? (code === CLOSE_WITHOUT_HANDSHAKE ? "broken" : "left");
    options.onClosed(reason);
    log.info({ ...about(session), reason }, "the connection of an agent has ended");
    if (session.isOpen || session.isOpening) void opening.close(session, reason);
  }

  function reopenAll(): void {
    for (const session of sessions.all()) if (session.hello) void opening.open(session);
  }

  const takeWork = async (session: AgentSession) => {
    const body = { gateway_id: api.instanceId, agent_id: session.agent.agentId, session_id: session.id };
    try {
      const { offers: offered } = await api.ask(takeAgentWork, { body });
      for (const offer of offered) offers.deliver(offer);
    } catch (error) {
      // What a lost answer contained comes when the session is opened again.
      if (!(error instanceof ApiError && error.status < 500)) void opening.open(session);
    }
  };

  return {
    server: sockets.server,
    accept(connected, agent) {
      const session = new AgentSession(uuidv7(), agent, connected, Date.now());
      sessions.add(session);
      sockets.attach(session);
      closeTooMany(sessions.of(agent.agentId), log);
    },
    deliver: offers.deliver,
    confirm({ request_id, agent_id }) {
      const here = sessions.of(agent_id);
      if (here.length === 0 || here.some(({ held }) => held?.has(request_id))) return;
      const newest = here.findLast(({ hello, isClosed }) => hello !== undefined && !isClosed);
      if (newest?.speaksAll) void opening.open(newest);
    },
    onNews(news) {
      if (news.type === "agent_revoked")
        for (const session of sessions.of(news.agent_id)) revoke(session, "news", log);
      else if (news.type === "agent_work") {
        const session = sessions.get(news.session_id);
        if (session) void takeWork(session);
      } else if (news.type === "stop_execution") {
        const session = sessions.get(news.session_id);
        if (session) cancel(session, news);
      }
    },
    reopenAll,
    counts: () => countsOf(sessions, reports.waiting()),
    drain() {
      isDraining = true;
      for (const session of sessions.all()) if (session.speaksAll) session.send({ type: "drain" });
      touch.now();
    },
    isIdle: () => reports.waiting() === 0 && [...sessions.all()].every(({ held }) => held === undefined),
    async stop(withinMs) {
      stopSweep();
      touch.stop();
      const left = [...sessions.all()];
      const reason = "stopping";
      for (const session of left) session.close(executionCloseCodes.stopping, reason, shutdown);
      await reports.flush(withinMs);
      const known = left.filter(({ isOpen }) => isOpen);
      for (const session of known) session.isOpen = false;
      await Promise.race([
        Promise.all(known.map((session) => opening.close(session, reason))),
        wait(withinMs, undefined, { ref: false }),
      ]);
      reports.stop();
      for (const session of left) session.socket.terminate();
      sockets.server.close();
    },
  };
}

/** The api stores a failure in place of an output that is too large as it encodes it, which may be several times longer. */
const MOST_CERTAIN_BYTES = MOST_DISPATCH_BYTES / 8;
/** Of one agent. Usually it has one, and two while it moves; what is broken is noticed when it is stale. */
const MOST_CONNECTIONS = 8;
/** RFC 6455, 7.1.5. */
const CLOSE_WITHOUT_HANDSHAKE = 1006;
const shutdown = { code: "gateway_shutdown", message: executionOutcomes.GATEWAY_SHUTDOWN.message };

/** `noticed`: usually by the news of it, at once; the others are for news that were lost. */
function revoke(session: AgentSession, noticed: "news" | "touch" | "opening", log: Log): void {
  log.info({ ...about(session), noticed }, "closes the connection of an agent: its token is no longer accepted");
  session.close(executionCloseCodes.revoked, "revoked", {
    code: "agent_token_refused",
    message: "The agent was revoked. Pair it again to connect.",
  });
}

/** Of one agent, oldest first. */
function closeTooMany(sessions: readonly AgentSession[], log: Log): void {
  const open = sessions.filter(({ isClosed }) => !isClosed);
  for (const session of open.slice(0, -MOST_CONNECTIONS)) {
    log.warn(about(session), "closes the oldest connection of an agent: it has too many");
    session.close(executionCloseCodes.cycle, "too_many_connections", {
      code: "rate_limit_exceeded",
      message: `An agent has at most ${MOST_CONNECTIONS} connections to a gateway: its oldest one is closed.`,
    });
  }
}

function countsOf(sessions: AgentSessions, unsent: number) {
  const counts = { current: 0, older: 0, in_flight: 0, unsent_events: unsent };
  for (const session of sessions.all()) {
    counts[session.speaksAll ? "current" : "older"] += 1;
    counts.in_flight += session.held?.size ?? 0;
  }
  return counts;
}

function cancel(session: AgentSession, stop: { request_id: string; generation: number; reason: string }): void {
  const held = session.held?.get(stop.request_id);
  if (held) held.stopping = true;
  if (!session.speaksAll) return;
  const { request_id: requestId, generation, reason } = stop;
  session.send({ type: "cancel", requestId, generation, reason });
}
