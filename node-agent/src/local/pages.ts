// The responses of the local listener.

import type { AgentCore } from "../core/agent-core.ts";
import type { DetectedHost } from "../host/facts.ts";
import type { Metrics } from "../metrics.ts";
import type { LocalAnswers } from "./listener.ts";

export function localPages(agent: {
  core: AgentCore;
  host: Pick<DetectedHost, "hostFacts">;
  metrics: Metrics;
  isAlive: () => boolean;
  terminals: { count(): number };
}): LocalAnswers {
  const { core, metrics } = agent;
  return {
    healthz: () => {
      const { connected, standing, lastHeartbeatAt, problem } = core.status();
      return {
        ok: agent.isAlive(),
        connected,
        standing: standing ?? null,
        last_heartbeat_at: lastHeartbeatAt === undefined ? null : new Date(lastHeartbeatAt).toISOString(),
        problem: problem?.reason ?? null,
        findings: core.findings().map(({ reason }) => reason),
      };
    },
    capacity: () => {
      const { cpus, memory_bytes, memory_free_bytes } = agent.host.hostFacts();
      const executor = core.tasks()?.executor;
      return {
        ...{ cpus, memory_bytes, memory_free_bytes },
        ...{ running: executor?.running() ?? 0, room: executor?.room() ?? 0 },
      };
    },
    metrics: () => {
      const tasks = core.tasks();
      metrics.set("tasks_running", tasks?.executor.running() ?? 0);
      metrics.set("terminals_open", agent.terminals.count());
      metrics.set("results_unsent", tasks?.journal.unsentCount() ?? 0);
      return metrics.text();
    },
  };
}
