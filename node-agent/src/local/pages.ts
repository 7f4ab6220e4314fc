// The responses of the local listener.

import type { VmHostReport } from "@holdfast/contracts/node/vm-host";
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
  vmHost: () => VmHostReport | undefined;
  /** Of the advertised address; null: none is known. */
  advertisedProblem: () => string | null;
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
        advertised_address_problem: agent.advertisedProblem(),
      };
    },
    capacity: () => {
      const { cpus, memory_bytes, memory_free_bytes } = agent.host.hostFacts();
      const executor = core.tasks()?.executor;
      return {
        ...{ cpus, memory_bytes, memory_free_bytes },
        ...{ running: executor?.running() ?? 0, room: executor?.room() ?? 0 },
        ...vmCapacity(agent.vmHost()),
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

/** Of a VM host, with the names that its operators know. */
export function vmCapacity(report: VmHostReport | undefined): Record<string, unknown> {
  if (!report) return {};
  const { physical, allocatable, free, most_vms } = report.capacity;
  return {
    ...{ cpu_total: allocatable.vcpus, cpu_free: free.vcpus },
    ...{ ram_total_mb: allocatable.memory_mib, ram_free_mb: free.memory_mib },
    vm_host: {
      ...{
        physical,
        allocatable,
        free,
        most_vms,
        vms: report.vms.filter(({ state }) => state !== "ended").length,
      },
      ...{ io_pressure_percent: report.io_pressure_percent, selected_accel: report.accelerator },
      problem: report.problem,
    },
  };
}

function timeOf(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}
