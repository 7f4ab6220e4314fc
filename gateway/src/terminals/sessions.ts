// All terminals of this gateway: who may have another, where a client or a node's stream belongs, and what
// the api says about them.

import { setTimeout as wait } from "node:timers/promises";
import { ApiError } from "@holdfast/contracts/errors";
import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import {
  admitNodeStream,
  awaitTerminalTask,
  claimTerminalToken,
  openTerminal,
  type ServiceNews,
  type TerminalGrant,
} from "@holdfast/contracts/service-endpoints";
import type { GatewayFrame } from "@holdfast/contracts/terminal-frames";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Log } from "@holdfast/service/log";
import type { Bindings } from "../bindings/bindings.ts";
import type { ApiLink } from "../services/link.ts";
import type { Outbox } from "../services/outbox.ts";
import type { Client } from "./client.ts";
import { createSession, type NodeStream, type Session, type Traffic } from "./session.ts";
import type { State } from "./state.ts";

export type Sessions = {
  /** Uses the token up and brings the client to its terminal, or tells it why not. */
  join(client: Client, claim: Claim): Promise<void>;
  /** Tells the client that its token could not be checked, and the api when it is back. */
  joinFailed(client: Client, claim: Claim, error: unknown): void;
  /** Whether this node may bring the stream of this terminal; throws ApiError or ApiAway. */
  admit(stream: {
    sessionId: string;
    nodeId: string;
    serial: string;
    correlationId: string;
  }): Promise<TerminalGrant>;
  streamArrived(grant: TerminalGrant, stream: NodeStream): Promise<void>;
  /** A certificate of this node was not accepted for this terminal. */
  streamRefused(place: { sessionId: string; nodeId: string }, error: ApiError): void;
  onNews(news: ServiceNews): void;
  /** News may have been missed: asks again for everything that they could have ended. */
  askAgain(): Promise<void>;
  count(): number;
  countByState(): Record<State["at"], number>;
  /** No client comes in any more; those that are there are told. Shells go on. */
  drain(): void;
};

export type Claim = { token: string; correlationId: string };

export type SessionsOptions = {
  api: Pick<ApiLink, "ask" | "instanceId">;
  bindings: Bindings;
  outbox: Pick<Outbox, "tell" | "tellUnclaimed">;
  onFailure(code: TerminalFailureCode): void;
  traffic: Traffic;
  log: Log;
};

/** Beyond the deadline: the api has a little more time to say why. */
const OPEN_SLACK_MS = 5_000;
/** An ended terminal is not begun anew by a node that has not heard of its end. */
const MOST_REMEMBERED = 10_000;
const ASKED_AT_ONCE = 16;
const CLOSE_NORMAL = 1000;
const again: BackoffPolicy = { firstMs: 100, maxMs: 5_000 };

export function createSessions(options: SessionsOptions): Sessions {
  const { api, bindings, outbox, log } = options;
  const sessions = new Map<string, Session>();
  const endedLately = new Set<string>();
  let draining = false;
  let asking = 0;

  const create = (grant: TerminalGrant, opens: boolean): Session => {
    const id = grant.session_id;
    const asking = new AbortController();
    const session = createSession({
      grant,
      opens,
      tell: (event) => outbox.tell(id, event),
      onFailure: options.onFailure,
      traffic: options.traffic,
      onClosed() {
        asking.abort();
        sessions.delete(id);
        // While it drains the shell goes on, and is brought to the next gateway.
        if (!draining) remember(id);
        bindings.release(id).catch((error: unknown) => log.warn({ err: error, session_id: id }, "kept a binding"));
      },
      log,
    });
    sessions.set(id, session);
    if (opens) queueMicrotask(() => void open(session, grant, asking.signal));
    return session;
  };

  const remember = (id: string) => {
    endedLately.add(id);
    if (endedLately.size <= MOST_REMEMBERED) return;
    for (const oldest of endedLately) {
      endedLately.delete(oldest);
      return;
    }
  };

  /** Whatever the api says about the task is only of use while there is no shell. */
  const open = async (session: Session, grant: TerminalGrant, signal: AbortSignal) => {
    const common = {
      params: { session_id: session.id },
      correlationId: grant.correlation_id,
      timeoutMs: grant.deadline_seconds * 1000 + OPEN_SLACK_MS,
      signal,
    };
    try {
      const size = { ...session.size(), gateway_id: api.instanceId };
      const asked = await api.ask(openTerminal, { ...common, body: size });
      if (!asked.sent) return session.happened({ type: "task_failed", ...reported(asked.failure) });
      session.happened({ type: "task_sent" });
      const { failure } = await awaitTask(session, {
        ...common,
        body: { task_id: asked.task_id, gateway_id: api.instanceId },
      });
      if (failure) session.happened({ type: "task_failed", ...reported(failure) });
      else session.happened({ type: "task_ended" });
    } catch (error) {
      if (signal.aborted) return;
      session.happened({ type: "task_failed", ...reasonOf(error, "terminal_open_unconfirmed") });
    }
  };

  /** An api that is restarted is asked again: the task goes on meanwhile, and the terminal has its own deadline. */
  const awaitTask = async (session: Session, asked: Parameters<typeof api.ask<typeof awaitTerminalTask>>[1]) => {
    for (let failures = 0; ; failures += 1) {
      try {
        return await api.ask(awaitTerminalTask, asked);
      } catch (error) {
        if (session.state() !== "opening" || !isPassing(error)) throw error;
        await wait(backoffDelay(again, failures), undefined, { ref: false });
        if (asked.signal?.aborted) throw error;
      }
    }
  };

  const countOf = (which: (session: Session) => boolean) => {
    let count = 0;
    for (const session of sessions.values()) if (which(session)) count += 1;
    return count;
  };

  const exhausted = ({ limits, user_key, node_id }: TerminalGrant) => {
    const own = countOf(({ userKey }) => userKey === user_key);
    if (own >= limits.per_user) {
      const detail = `${own} of ${limits.per_user} terminals of yours are open, detached ones included.`;
      return { code: "terminal_sessions_exhausted", detail } as const;
    }
    const onNode = countOf(({ nodeId }) => nodeId === node_id);
    if (onNode >= limits.per_node) {
      const detail = `${onNode} of ${limits.per_node} terminals on the node are open, detached ones included.`;
      return { code: "terminal_node_full", detail } as const;
    }
    return undefined;
  };

  const refuse = (client: Client, grant: TerminalGrant, code: TerminalFailureCode, detail: string | null) => {
    options.onFailure(code);
    client.askedAt = Date.parse(grant.asked_at);
    client.fail(code, { detail, correlationId: grant.correlation_id });
    const { session_id, correlation_id, purpose } = grant;
    outbox.tell(session_id, { ...failedNow(code, detail, correlation_id), ended: purpose === "open" });
  };

  const place = async (client: Client, grant: TerminalGrant): Promise<void> => {
    if (draining) return refuse(client, grant, "terminal_gateway_draining", null);
    if (!client.isOpen()) {
      return refuse(client, grant, "terminal_gateway_upgrade_failed", "The client left before it was let in.");
    }
    const present = sessions.get(grant.session_id);
    if (present) return present.clientArrived(client, grant);
    if (endedLately.has(grant.session_id)) return refuse(client, grant, "terminal_session_unknown", null);
    const opens = grant.purpose === "open";
    const tooMany = opens ? exhausted(grant) : undefined;
    if (tooMany) return refuse(client, grant, tooMany.code, tooMany.detail);
    const session = create(grant, opens);
    if (opens) {
      const at = new Date(client.connectedAt).toISOString();
      outbox.tell(session.id, { type: "step", step: "browser_ws_ready", at });
    }
    session.clientArrived(client, grant);
    await takeBinding(session);
  };

  const takeBinding = async (session: Session) => {
    const why = await bindings.take(session.id).then(
      ({ owner }) => (owner === api.instanceId ? undefined : "Another gateway has this terminal."),
      () => "The gateway cannot remember which terminals it has.",
    );
    if (why === undefined) return;
    session.happened({ type: "task_failed", code: "terminal_gateway_upgrade_failed", detail: why });
    // Its shell may be well where it is.
    session.happened({ type: "drained" });
  };

  /** A certificate that was replaced ends its stream: the agent comes back with the new one. */
  const onNotAdmitted = (session: Session, { code, details }: ApiError) => {
    const { reason } = details;
    if (typeof reason === "string") closeOf(session, reason);
    else if (code === "terminal_session_unknown") closeOf(session, code);
    else session.cutStream();
  };

  const closeOf = (session: Session, code: string) => session.happened({ type: "told_to_close", code });

  const admit: Sessions["admit"] = async ({ sessionId, nodeId, serial, correlationId }) => {
    if (draining) throw new ApiError("shutting_down", { headers: { "retry-after": "1" } });
    if (endedLately.has(sessionId)) throw new ApiError("terminal_session_unknown");
    const { grant } = await api.ask(admitNodeStream, {
      params: { session_id: sessionId },
      body: { node_id: nodeId, serial, gateway_id: api.instanceId },
      correlationId,
    });
    if (grant.node_id !== nodeId || grant.session_id !== sessionId) throw new ApiError("terminal_session_unknown");
    return grant;
  };

  /** Until there is an answer, or no need for one. */
  const askAbout = async (session: Session, isNeeded: () => boolean) => {
    const { id: sessionId, nodeId } = session;
    for (let failures = 0; isNeeded() && !draining && sessions.get(sessionId) === session; failures += 1) {
      const serial = session.serial();
      if (serial === undefined) return;
      try {
        await admit({ sessionId, nodeId, serial, correlationId: sessionId });
        return;
      } catch (error) {
        if (!isPassing(error)) return onNotAdmitted(session, error as ApiError);
        await wait(backoffDelay(again, failures), undefined, { ref: false });
      }
    }
  };

  /** The api has recorded what it refused itself; what it did not answer is reported when it does. */
  const refuseUnclaimed: Sessions["joinFailed"] = (client, { token, correlationId }, error) => {
    const { code, detail, correlationId: recorded } = reasonOf(error, "terminal_token_unverified");
    const id = recorded ?? correlationId;
    options.onFailure(code);
    log.info({ correlation_id: id, code, detail }, "did not let a client in");
    client.fail(code, { detail, correlationId: id });
    if (!(error instanceof ApiError) || isPassing(error))
      outbox.tellUnclaimed(token, { ...failedNow(code, detail, id), ended: false });
  };

  return {
    admit,

    async join(client, { token, correlationId }) {
      let grant: TerminalGrant;
      try {
        const body = { token, gateway_id: api.instanceId };
        grant = await api.ask(claimTerminalToken, { body, correlationId });
      } catch (error) {
        return refuseUnclaimed(client, { token, correlationId }, error);
      }
      return place(client, grant);
    },

    joinFailed: refuseUnclaimed,

    async streamArrived(grant, stream) {
      const present = sessions.get(grant.session_id);
      if (present) return present.streamArrived(stream);
      // It ended while the api was asked about this stream.
      if (endedLately.has(grant.session_id)) return endShell(stream);
      // Of a shell that this gateway does not know, or no longer: it was restarted.
      const session = create(grant, false);
      session.streamArrived(stream);
      await takeBinding(session);
    },

    streamRefused({ sessionId, nodeId }, error) {
      const session = sessions.get(sessionId);
      if (session?.nodeId !== nodeId) return;
      const { reason } = error.details;
      if (typeof reason === "string") closeOf(session, reason);
      else session.happened({ type: "stream_refused", detail: error.message });
    },

    onNews(news) {
      if (news.type === "node_revoked") {
        for (const session of [...sessions.values()]) {
          if (session.nodeId === news.node_id) session.cutStream();
        }
      } else if (news.type === "close_terminal") {
        const session = sessions.get(news.session_id);
        if (session) closeOf(session, news.code);
      }
    },

    async askAgain() {
      asking += 1;
      const round = asking;
      const left = [...sessions.values()];
      const one = async () => {
        for (let session = left.pop(); session; session = left.pop())
          await askAbout(session, () => round === asking);
      };
      await Promise.all(Array.from({ length: ASKED_AT_ONCE }, one));
    },

    count: () => sessions.size,
    countByState() {
      const counts = { opening: 0, attaching: 0, attached: 0, detached: 0, away: 0, closed: 0 };
      for (const session of sessions.values()) counts[session.state()] += 1;
      return counts;
    },
    drain() {
      draining = true;
      for (const session of [...sessions.values()]) session.happened({ type: "drained" });
    },
  };
}

function endShell({ socket }: NodeStream): void {
  const close: GatewayFrame = { type: "close", reason: "closed" };
  socket.send(JSON.stringify(close));
  socket.close(CLOSE_NORMAL, close.reason);
}

/** Asking again may help: no answer came, or none that decides anything. */
function isPassing(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500 || error.code === "rate_limit_exceeded";
}

/** Why the api did not help, in the words of terminals. `correlationId`: under which the api has recorded it. */
function reasonOf(
  error: unknown,
  unanswered: TerminalFailureCode,
): { code: TerminalFailureCode; detail: string | null; correlationId?: string } {
  if (!(error instanceof ApiError) || isPassing(error)) return { code: unanswered, detail: null };
  const { reason, correlation_id } = error.details;
  const recorded = typeof correlation_id === "string" ? { correlationId: correlation_id } : {};
  const code = typeof reason === "string" ? reason : error.code;
  if (!isTerminalFailure(code)) return { code: unanswered, detail: error.message, ...recorded };
  return { code, detail: code === error.code ? error.message : null, ...recorded };
}

const reported = ({ code, message: detail }: { code: string; message: string }) => ({ code, detail });

const failedNow = (code: TerminalFailureCode, detail: string | null, correlation_id: string) =>
  ({ type: "failed", at: new Date().toISOString(), code, detail, correlation_id }) as const;
