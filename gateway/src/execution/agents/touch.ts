// Tells the api every few seconds which agents are connected here, all in one request. It returns whose token was revoked.
// After a gap the api may have ended sessions that are still open: they are opened again.

import { touchAgentSessions } from "@holdfast/contracts/internal/executions";
import type { ApiLink } from "../../api-link/link.ts";
import type { AgentSession } from "./session.ts";
import type { AgentSessions } from "./sessions.ts";

const TOUCH_MS = 5_000;
const MOST_AT_ONCE = 5_000;

export type Touch = {
  /** Now, because something about a session has changed. */
  now(): void;
  stop(): void;
};

export function startTouch(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  sessions: AgentSessions;
  isDraining(): boolean;
  onRevoked(session: AgentSession): void;
  onGap(): void;
}): Touch {
  const { api, sessions } = options;
  let isRunning = false;
  let isNeeded = false;
  let missed = false;

  const round = async () => {
    const open = [...sessions.all()].filter(({ isOpen }) => isOpen);
    for (let at = 0; at < open.length; at += MOST_AT_ONCE) {
      const some = open.slice(at, at + MOST_AT_ONCE).map((session) => ({
        agent_id: session.agent.agentId,
        session_id: session.id,
        draining: session.isDraining || options.isDraining(),
        journal_id: session.journalId,
      }));
      const { revoked } = await api.ask(touchAgentSessions, {
        body: { gateway_id: api.instanceId, sessions: some },
      });
      for (const id of revoked) {
        const session = sessions.get(id);
        if (session) options.onRevoked(session);
      }
    }
    if (missed) options.onGap();
    missed = false;
  };

  const run = async () => {
    isNeeded = true;
    if (isRunning) return;
    isRunning = true;
    while (isNeeded) {
      isNeeded = false;
      await round().catch(() => {
        missed = true;
      });
    }
    isRunning = false;
  };

  const timer = setInterval(() => void run(), TOUCH_MS).unref();
  return { now: () => void run(), stop: () => clearInterval(timer) };
}
