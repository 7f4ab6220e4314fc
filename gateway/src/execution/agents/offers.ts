// Sends requests to agents. An agent that speaks all of the protocol gets a request as it was signed, and may get it again.
// An agent of another system gets it once, reduced to what it knows.

import type { SignedExecuteFrame } from "@holdfast/contracts/execution/frames";
import type { ExecutionOffer } from "@holdfast/contracts/internal/executions";
import type { Log } from "@holdfast/service/log";
import { cycleAt, forOlderAgent, olderFrame } from "./older-agents.ts";
import type { Reports } from "./reports.ts";
import type { AgentSession } from "./session.ts";
import type { AgentSessions } from "./sessions.ts";

export type Offers = {
  deliver(offer: ExecutionOffer): void;
  /** Delivers what came for this agent while it was not connected. */
  deliverKept(session: AgentSession): void;
};

/** An agent that cannot take a payload is offered it again and again only if there is no other. */
const MOST_GENERATIONS = 3;
const MOST_KEPT = 1000;

export function createOffers(options: {
  sessions: AgentSessions;
  reports: Pick<Reports, "declined" | "failed">;
  log: Log;
}): Offers {
  const { sessions, reports, log } = options;
  /** Of agents of other systems that disconnected before the frame was written: the api offers it to nobody else. */
  const kept = new Map<string, ExecutionOffer>();

  const sendToOlder = (session: AgentSession, offer: ExecutionOffer) => {
    const reduced = forOlderAgent(offer.kind, offer.payload);
    if ("unfit" in reduced) {
      const reason = `The agent ${session.agent.name} is of another system: ${reduced.unfit}.`;
      if (offer.generation < MOST_GENERATIONS) reports.declined(session, offer, reason);
      else reports.failed(session, offer, reason);
      return;
    }
    // Never twice, whatever the api says.
    if (session.held?.has(offer.request_id)) return;
    const now = Date.now();
    session.hold(offer.request_id, {
      generation: offer.generation,
      cycleAt: cycleAt(now, Date.parse(offer.deadline_at)),
      needsExitCode: isShellTask(offer.payload),
      stopping: false,
    });
    session.send(olderFrame(offer, reduced.payload));
  };

  const send = (session: AgentSession, offer: ExecutionOffer) => {
    log.debug(
      {
        correlation_id: offer.correlation_id,
        request_id: offer.request_id,
        agent_id: offer.agent_id,
        session_id: session.id,
        generation: offer.generation,
      },
      "sends a request to an agent",
    );
    if (!session.speaksAll) return sendToOlder(session, offer);
    if (offer.signature === null) return;
    session.hold(offer.request_id, {
      generation: offer.generation,
      cycleAt: Number.POSITIVE_INFINITY,
      needsExitCode: isShellTask(offer.payload),
      stopping: false,
    });
    session.send(signedFrame(offer, offer.signature));
  };

  const keep = (offer: ExecutionOffer) => {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value ?? "");
    kept.set(offer.request_id, offer);
  };

  return {
    deliver(offer) {
      const session = liveSession(sessions, offer);
      if (session) return send(session, offer);
      // One that speaks all of the protocol says in its next `hello` what it holds, and gets the rest again.
      if (offer.signature === null) keep(offer);
    },
    deliverKept(session) {
      if (kept.size === 0) return;
      const now = Date.now();
      for (const [id, offer] of kept) {
        const mine = offer.agent_id === session.agent.agentId;
        const over = now >= Date.parse(offer.expires_at);
        if (mine || over) kept.delete(id);
        if (mine && !over) send(session, offer);
      }
    },
  };
}

/** The session that it was offered to, or a newer one of the same agent and journal, as long as nothing was written. */
function liveSession(sessions: AgentSessions, offer: ExecutionOffer): AgentSession | undefined {
  const isLive = (session: AgentSession | undefined) =>
    session !== undefined && !session.isClosed && session.hello !== undefined;
  const own = sessions.get(offer.session_id);
  if (isLive(own)) return own;
  return sessions.of(offer.agent_id).findLast((one) => isLive(one) && one.journalId === offer.journal_id);
}

function signedFrame(offer: ExecutionOffer, signature: string): SignedExecuteFrame {
  return {
    type: "execute",
    requestId: offer.request_id,
    organizationId: offer.org_id,
    userId: offer.user_id,
    kind: offer.kind,
    payload: offer.payload,
    ...(offer.secret ? { secret: offer.secret } : {}),
    agentId: offer.agent_id,
    generation: offer.generation,
    expiresAt: offer.expires_at,
    timeoutMs: offer.timeout_ms,
    signature,
    correlationId: offer.correlation_id,
  };
}

function isShellTask(payload: unknown): boolean {
  const step = payload as { node?: { config?: { task?: unknown } | null } | null } | null | undefined;
  return step?.node?.config?.task !== undefined;
}
