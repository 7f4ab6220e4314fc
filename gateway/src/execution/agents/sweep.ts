// One timer for all sockets of agents: who has not said `hello` in time, who is silent for too long, whose socket is to be
// cycled, and who may be read again.

import { executionCloseCodes } from "@holdfast/contracts/execution/frames";
import type { AgentSession } from "./session.ts";
import type { AgentSessions } from "./sessions.ts";

const SWEEP_MS = 250;
/** From the open socket on. */
const HELLO_WITHIN_MS = 10_000;

type Fate = "stays" | "no_hello" | "stale" | "cycle";

/** What becomes of a session now. */
function fateOf(session: AgentSession, now: number, staleMs: number): Fate {
  if (session.isClosed) return "stays";
  if (!session.hello) return now - session.connectedAt > HELLO_WITHIN_MS ? "no_hello" : "stays";
  if (now - session.heardAt > staleMs) return "stale";
  if (session.held && !session.speaksAll) {
    for (const { cycleAt } of session.held.values()) if (cycleAt <= now) return "cycle";
  }
  return "stays";
}

/** Returns a function that ends it. */
export function startSweep(options: {
  sessions: AgentSessions;
  staleMs: number;
  onEnded(session: AgentSession, fate: Fate): void;
}): () => void {
  const { sessions, staleMs } = options;
  const timer = setInterval(() => {
    const now = Date.now();
    for (const session of sessions.all()) {
      session.droppedBytes = 0;
      // It was not read for a moment, because it sends more than can be passed on.
      if (session.isBehind) session.heardAt = now;
      else if (session.socket.isPaused) session.socket.resume();
      const fate = fateOf(session, now, staleMs);
      if (fate === "stays") continue;
      options.onEnded(session, fate);
      close(session, fate);
    }
  }, SWEEP_MS).unref();
  return () => clearInterval(timer);
}

function close(session: AgentSession, fate: Exclude<Fate, "stays">) {
  switch (fate) {
    case "cycle":
      return session.close(executionCloseCodes.cycle, "cycle");
    case "no_hello":
      return session.close(executionCloseCodes.malformed, "hello_missing");
    case "stale":
      session.close(executionCloseCodes.stale, "stale", {
        code: "agent_stale",
        message: "Nothing was received from the agent for too long. Send a ping every 15 seconds.",
      });
      // Whoever is silent does not answer a close either.
      return session.socket.terminate();
  }
}
