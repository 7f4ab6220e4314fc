// Opens sessions at the api, and again whenever something may have been missed: the api then knows what the agent holds,
// and returns what it does not. Without a response it is asked again for as long as the agent is connected.

import { setTimeout as wait } from "node:timers/promises";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import { EXECUTION_PROTOCOL } from "@holdfast/contracts/execution/frames";
import { closeAgentSession, openAgentSession } from "@holdfast/contracts/internal/executions";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "../../api-link/link.ts";
import { limited } from "../limited.ts";
import { type AgentSession, newestVersion } from "./session.ts";

type Opened = AnswerOf<typeof openAgentSession>;

export type Opening = {
  open(session: AgentSession): Promise<void>;
  /** Its connection has ended. */
  close(session: AgentSession, reason: string): Promise<void>;
};

export type OpeningOptions = {
  api: Pick<ApiLink, "ask" | "instanceId">;
  /** This gateway is. */
  isDraining(): boolean;
  onOpened(session: AgentSession, opened: Opened): void;
  /** Its token is no longer accepted. */
  onRefused(session: AgentSession): void;
  log: Log;
};

/** A whole fleet may connect at once; see public-route.ts. */
const MOST_AT_ONCE = 6;
const MOST_HELD = 1000;
const CLOSE_ATTEMPTS = 4;
const again: BackoffPolicy = { firstMs: 200, maxMs: 5_000 };

export function createOpening({ api, isDraining, onOpened, onRefused, log }: OpeningOptions): Opening {
  const inTurn = limited(MOST_AT_ONCE);

  const ask = (session: AgentSession) =>
    inTurn(async () => {
      if (session.isClosed || !session.hello) return undefined;
      const { agentVersion, capabilities } = session.hello;
      return api.ask(openAgentSession, {
        body: {
          gateway_id: api.instanceId,
          agent_id: session.agent.agentId,
          session_id: session.id,
          agent_version: agentVersion,
          capabilities,
          protocol_version: session.protocolVersion,
          holding: holdingOf(session),
          key_set_version: session.keySetVersion,
          journal_id: session.journalId,
          draining: session.isDraining || isDraining(),
          again: session.isOpen,
        },
        correlationId: session.agent.correlationId,
      });
    });

  const close = async (session: AgentSession, reason: string): Promise<void> => {
    const body = {
      gateway_id: api.instanceId,
      agent_id: session.agent.agentId,
      session_id: session.id,
      reason: reason.slice(0, 120),
    };
    // A session that could not be closed ends when it is no longer touched.
    for (let failures = 0; failures < CLOSE_ATTEMPTS; failures += 1) {
      try {
        return await inTurn(() =>
          api.ask(closeAgentSession, { body, correlationId: session.agent.correlationId }),
        );
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) return;
        await wait(backoffDelay(again, failures), undefined, { ref: false });
      }
    }
  };

  const attempt = async (session: AgentSession): Promise<"done" | "again"> => {
    session.opensAgain = false;
    try {
      const opened = await ask(session);
      if (opened && !session.isClosed) welcome(session, opened);
      if (opened && !session.isClosed) onOpened(session, opened);
      // The close that was sent meanwhile may have come first.
      if (opened && session.isClosed) await close(session, session.endedBy ?? "left");
      return "done";
    } catch (error) {
      if (error instanceof ApiError && error.code === "agent_token_refused") {
        onRefused(session);
        return "done";
      }
      const { agentId, correlationId } = session.agent;
      const details = { correlation_id: correlationId, agent_id: agentId, reason: (error as Error).message };
      log[error instanceof ApiError ? "warn" : "debug"](details, "the api has not opened an agent's session yet");
      return "again";
    }
  };

  /** The agent learns of keys that are newer than its own also when a session is opened again. */
  const welcome = (session: AgentSession, { lease_ms, key_sets }: Opened) => {
    const isFirst = !session.isOpen;
    session.isOpen = true;
    session.keySetVersion = newestVersion(key_sets, session.keySetVersion);
    if (!session.speaksAll || !(isFirst || key_sets.length > 0)) return;
    session.send({
      type: "welcome",
      protocolVersion: Math.min(EXECUTION_PROTOCOL, session.protocolVersion),
      agentId: session.agent.agentId,
      organizationId: session.agent.orgId,
      sessionId: session.id,
      leaseMs: lease_ms,
      keySets: key_sets,
    });
  };

  return {
    async open(session) {
      session.opensAgain = true;
      if (session.isOpening) return;
      session.isOpening = true;
      for (let failures = 0; session.opensAgain && !session.isClosed; ) {
        if ((await attempt(session)) === "done") {
          failures = 0;
          continue;
        }
        session.opensAgain = true;
        await wait(backoffDelay(again, failures), undefined, { ref: false });
        failures += 1;
      }
      session.isOpening = false;
    },
    close,
  };
}

/** Only what it says it has: an agent of another system is never sent anything again in any case. */
function holdingOf(session: AgentSession): { requestId: string; generation: number }[] {
  if (!session.speaksAll || !session.held) return [];
  return [...session.held].slice(0, MOST_HELD).map(([requestId, { generation }]) => ({ requestId, generation }));
}
