// The sessions of a gateway, by id. Agents are looked for rarely, so there is no second index for them.

import type { AgentSession } from "./session.ts";

export type AgentSessions = {
  add(session: AgentSession): void;
  remove(session: AgentSession): void;
  get(id: string): AgentSession | undefined;
  all(): Iterable<AgentSession>;
  /** Of one agent, oldest first. */
  of(agentId: string): AgentSession[];
  size(): number;
};

export function agentSessions(): AgentSessions {
  const sessions = new Map<string, AgentSession>();
  return {
    add: (session) => void sessions.set(session.id, session),
    remove: (session) => void sessions.delete(session.id),
    get: (id) => sessions.get(id),
    all: () => sessions.values(),
    of: (agentId) => [...sessions.values()].filter(({ agent }) => agent.agentId === agentId),
    size: () => sessions.size,
  };
}
