// Why each agent of the organization was not chosen for a request.

import type { NotChosen } from "@holdfast/contracts/internal/executions";
import { Link } from "@tanstack/react-router";

export function NotChosenAgents({ agents }: { agents: readonly NotChosen[] }) {
  if (agents.length === 0) {
    return (
      <p className="px-5 py-4">
        The organization has no agents.{" "}
        <Link to="/agents" className="rounded-sm font-medium text-kelp hover:underline">
          Pair an agent
        </Link>
      </p>
    );
  }
  return (
    <ul aria-label="Agents that were not chosen">
      {agents.map((agent) => (
        <li key={agent.agent_id} className="flex flex-wrap gap-x-4 border-b border-line px-5 py-3 last:border-b-0">
          <span className="font-medium">{agent.name}</span>
          <span className="text-ink-muted">{agent.message}</span>
        </li>
      ))}
    </ul>
  );
}
