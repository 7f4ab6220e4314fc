// The responses of the local listener.

import type { AgentCore } from "../core/agent-core.ts";
import type { DetectedHost } from "../host/facts.ts";
import type { LinkInUse } from "../link/stream/transport.ts";
import type { Metrics } from "../metrics.ts";
import type { LocalAnswers } from "./listener.ts";

export function localPages(agent: {
  core: AgentCore;
  host: Pick<DetectedHost, "hostFacts">;
  metrics: Metrics;
  isAlive: () => boolean;
  link: () => LinkInUse | undefined;
  terminals: { count(): number };
}): LocalAnswers {
  const { core, metrics } = agent;
  const link = () => (core.status().connected ? agent.link() : undefined);
  return {
    healthz: () => {
      const { connected, standing, lastHeartbeatAt, problem } = core.status();
      return {
        ok: agent.isAlive(),
        connected,
        link: link()?.kind ?? null,
        link_since: timeOf(link()?.since),
        standing: standing ?? null,
        last_heartbeat_at: timeOf(lastHeartbeatAt),
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
      metrics.set("stream_up", link()?.kind === "stream" ? 1 : 0);
      metrics.set("tasks_running", tasks?.executor.running() ?? 0);
      metrics.set("terminals_open", agent.terminals.count());
      const token = core.recoveryToken();
      if (token) metrics.set("recovery_token_expires_seconds", Date.parse(token.expires_at) / 1000);
      metrics.set("results_unsent", tasks?.journal.unsentCount() ?? 0);
      return metrics.text();
    },
  };
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
