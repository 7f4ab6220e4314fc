// All terminals of this gateway: who may have another, which one a client or a node's stream belongs to, and what the api
// says about them.

import type { ApiError } from "@holdfast/contracts/errors";
import type { ServiceNews, TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { GatewayFrame } from "@holdfast/contracts/terminal/frames";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "../api-link/link.ts";
import type { Outbox } from "../api-link/outbox.ts";
import type { Bindings, Lost } from "../bindings/bindings.ts";
import { failedNow } from "./api-answers.ts";
import type { Client } from "./client.ts";
import { createEndedSessions } from "./ended-sessions.ts";
import { openOnNode } from "./opening.ts";
import { isTakenElsewhere, takeForClient } from "./ownership.ts";
import { createSession, type Session } from "./session.ts";
import type { NodeStream, Traffic } from "./session-data.ts";
import type { State } from "./states.ts";

export type Sessions = {
  /** Attaches a client whose token was claimed to its terminal, or sends it the reason why not. */
  join(client: Client, grant: TerminalGrant): Promise<void>;
  streamArrived(grant: TerminalGrant, stream: NodeStream): Promise<void>;
  /** A certificate of this node was not accepted for this terminal. */
  streamRefused(place: { sessionId: string; nodeId: string }, error: ApiError): void;
  /** The api no longer admits the stream of this terminal. */
  noLongerAdmitted(session: Session, error: ApiError): void;
  onNews(news: ServiceNews): void;
  /** Another gateway has this terminal now. */
  onLost(id: string, why: Lost): void;
  has(id: string): boolean;
  hasEnded(id: string): boolean;
  isCurrent(session: Session): boolean;
  isDraining(): boolean;
  all(): Iterable<Session>;
  count(): number;
  countByState(): Record<State["at"], number>;
  /** No client is admitted any more; those that are connected get an error. Shells keep running. */
  drain(): void;
};

export type SessionsOptions = {
  api: Pick<ApiLink, "ask" | "instanceId">;
  bindings: Bindings;
  outbox: Pick<Outbox, "report">;
  onFailure(code: TerminalFailureCode): void;
  traffic: Traffic;
  log: Log;
};

const CLOSE_NORMAL = 1000;

export function createSessions(options: SessionsOptions): Sessions {
  const { api, bindings, outbox, log } = options;
  const sessions = new Map<string, Session>();
  const ended = createEndedSessions();
  let draining = false;
  /** Their shells go on, and may come back to this gateway. */
  const moving = new Set<string>();

  const create = (grant: TerminalGrant, opens: boolean): { session: Session; signal: AbortSignal } => {
    const id = grant.session_id;
    const closed = new AbortController();
    const session = createSession({
      grant,
      opens,
      isFindable: () => bindings.isPublished(id),
      report: (event) => outbox.report(id, event),
      onFailure: options.onFailure,
      traffic: options.traffic,
      onClosed() {
        closed.abort();
        sessions.delete(id);
        // While the gateway drains the shell keeps running, and is connected to the next gateway.
        if (!draining && !moving.has(id)) ended.add(id);
        // One that is not released expires.
        bindings
          .release(id)
          .catch((error: Error) =>
            log.debug({ reason: error.message, session_id: id }, "could not release a binding"),
          );
      },
      log,
    });
    sessions.set(id, session);
    return { session, signal: closed.signal };
  };

  const refuse = (client: Client, grant: TerminalGrant, code: TerminalFailureCode, detail: string | null) => {
    options.onFailure(code);
    client.requestedAt = Date.parse(grant.asked_at);
    client.fail(code, { detail, correlationId: grant.correlation_id });
    const { session_id, correlation_id, purpose } = grant;
    outbox.report(session_id, { ...failedNow(code, detail, correlation_id), ended: purpose === "open" });
  };

  const giveUp = (session: Session, why: Lost) => {
    moving.add(session.id);
    session.apply({ type: "moved", takenOver: why === "taken_over" });
    moving.delete(session.id);
  };

  const close = (session: Session, code: string) => session.apply({ type: "close_requested", code });

  return {
    async join(client, grant) {
      if (draining) return refuse(client, grant, "terminal_gateway_draining", null);
      if (!client.isOpen()) {
        return refuse(client, grant, "terminal_gateway_upgrade_failed", "The client left before it was admitted.");
      }
      const existing = sessions.get(grant.session_id);
      if (existing) return existing.clientArrived(client, grant);
      if (ended.has(grant.session_id)) return refuse(client, grant, "terminal_session_unknown", null);
      const opens = grant.purpose === "open";
      const tooMany = opens ? limitReached(sessions.values(), grant) : undefined;
      if (tooMany) return refuse(client, grant, tooMany.code, tooMany.detail);
      const { session, signal } = create(grant, opens);
      if (opens) {
        const at = new Date(client.connectedAt).toISOString();
        outbox.report(session.id, { type: "step", step: "browser_ws_ready", at });
      }
      session.clientArrived(client, grant);
      await takeForClient(options, grant);
      if (opens && !signal.aborted) void openOnNode(api, { session, grant, signal });
    },

    async streamArrived(grant, stream) {
      const existing = sessions.get(grant.session_id);
      if (existing) return existing.streamArrived(stream);
      // It ended while the api checked this stream.
      if (ended.has(grant.session_id)) return endShell(stream);
      // The gateway does not know this shell, because it was restarted.
      const { session } = create(grant, false);
      session.streamArrived(stream);
      const isElsewhere = await isTakenElsewhere(options, session.id);
      if (isElsewhere && sessions.get(session.id) === session) giveUp(session, "elsewhere");
    },

    streamRefused({ sessionId, nodeId }, error) {
      const session = sessions.get(sessionId);
      if (session?.nodeId !== nodeId) return;
      const { reason } = error.details;
      if (typeof reason === "string") close(session, reason);
      else session.apply({ type: "stream_refused", detail: error.message });
    },

    // A replaced certificate ends its stream: the agent reconnects with the new one.
    noLongerAdmitted(session, { code, details: { reason } }) {
      if (typeof reason === "string") close(session, reason);
      else if (code === "terminal_session_unknown") close(session, code);
      else if (code === "terminal_moved") giveUp(session, "elsewhere");
      else session.cutStream();
    },

    onNews(news) {
      if (news.type === "node_revoked") {
        for (const session of [...sessions.values()]) {
          if (session.nodeId === news.node_id) session.cutStream();
        }
      } else if (news.type === "close_terminal") {
        const session = sessions.get(news.session_id);
        if (session) close(session, news.code);
      }
    },

    onLost(id, why) {
      const session = sessions.get(id);
      if (session) giveUp(session, why);
    },

    has: (id) => sessions.has(id),
    hasEnded: ended.has,
    isCurrent: (session) => !draining && sessions.get(session.id) === session,
    isDraining: () => draining,
    all: () => sessions.values(),
    count: () => sessions.size,
    countByState() {
      const counts = { opening: 0, attaching: 0, attached: 0, detached: 0, away: 0, closed: 0 };
      for (const session of sessions.values()) counts[session.state()] += 1;
      return counts;
    },
    drain() {
      draining = true;
      for (const session of [...sessions.values()]) session.apply({ type: "drained" });
    },
  };
}

function limitReached(sessions: Iterable<Session>, { limits, user_key, node_id, elsewhere }: TerminalGrant) {
  let own = elsewhere.of_user;
  let onNode = elsewhere.on_node;
  for (const { userKey, nodeId } of sessions) {
    if (userKey === user_key) own += 1;
    if (nodeId === node_id) onNode += 1;
  }
  if (own >= limits.per_user) {
    const detail = `${own} of ${limits.per_user} terminals of yours are open, detached ones included.`;
    return { code: "terminal_sessions_exhausted", detail } as const;
  }
  if (onNode >= limits.per_node) {
    const detail = `${onNode} of ${limits.per_node} terminals on the node are open, detached ones included.`;
    return { code: "terminal_node_full", detail } as const;
  }
  return undefined;
}

function endShell({ socket }: NodeStream): void {
  const close: GatewayFrame = { type: "close", reason: "closed" };
  socket.send(JSON.stringify(close));
  socket.close(CLOSE_NORMAL, close.reason);
}
