// The agent's counters and gauges, and their Prometheus text. What is not in the table does not
// exist; counters count from the start of the process.

type Entry = { kind: "counter" | "gauge"; help: string; unset?: true; by?: string };

const table = {
  connection_up: { kind: "gauge", help: "Whether the last request to the server succeeded." },
  stream_up: {
    kind: "gauge",
    help: "Whether the agent has a stream to the server; 0: it polls, or is not connected.",
  },
  last_heartbeat_timestamp_seconds: {
    kind: "gauge",
    unset: true,
    help: "When the server last accepted a heartbeat, Unix time.",
  },
  certificate_expires_seconds: { kind: "gauge", unset: true, help: "When the certificate expires, Unix time." },
  clock_skew_seconds: { kind: "gauge", unset: true, help: "The server's clock minus this host's, as last seen." },
  identity_rejections_total: { kind: "counter", help: "Requests refused because of this node's identity." },
  tasks_started_total: { kind: "counter", help: "Tasks that began to run." },
  tasks_succeeded_total: { kind: "counter", help: "Tasks that succeeded." },
  tasks_failed_total: { kind: "counter", help: "Tasks that failed, were cancelled or interrupted." },
  tasks_refused_total: { kind: "counter", help: "Tasks refused before they ran." },
  tasks_running: { kind: "gauge", help: "Tasks that are running." },
  results_unsent: { kind: "gauge", help: "Results in the journal without a verdict of the server." },
  polls_failed_total: { kind: "counter", help: "Requests for tasks, and heartbeats, that failed." },
  results_failed_total: { kind: "counter", help: "Deliveries of results that failed." },
  renewals_failed_total: { kind: "counter", help: "Attempts to renew the certificate that failed." },
  recovery_attempts_total: { kind: "counter", help: "Requests for a new identity by recovery token." },
  recovery_successes_total: { kind: "counter", help: "Requests for a new identity that succeeded." },
  recovery_failures_total: { kind: "counter", help: "Requests for a new identity that failed or were refused." },
  recovery_suppressed_total: {
    kind: "counter",
    help: "Requests for a new identity that were due but not made, because the last new one was rejected.",
  },
  recovery_token_expires_seconds: {
    kind: "gauge",
    unset: true,
    help: "When the recovery token expires, Unix time.",
  },
  terminals_open: { kind: "gauge", help: "Shells that run now, connected to the gateway or not." },
  terminal_failures_total: {
    kind: "counter",
    by: "code",
    help: "Terminals that could not be opened, or failed.",
  },
} as const satisfies Record<string, Entry>;

export type MetricName = keyof typeof table;
type LabelledName = { [N in MetricName]: (typeof table)[N] extends { by: string } ? N : never }[MetricName];
type CounterName = Exclude<
  { [N in MetricName]: (typeof table)[N]["kind"] extends "counter" ? N : never }[MetricName],
  LabelledName
>;
type GaugeName = Exclude<MetricName, CounterName | LabelledName>;

export type Metrics = {
  count(name: CounterName, by?: number): void;
  /** `label`: one of few that the code itself knows. */
  countOne(name: LabelledName, label: string): void;
  set(name: GaugeName, value: number): void;
  /** Undefined: a gauge that was never set. */
  value(name: MetricName): number | undefined;
  /** Prometheus text format 0.0.4. */
  text(): string;
};

const PREFIX = "holdfast_agent_";

export function createMetrics(): Metrics {
  const entries = Object.entries(table) as [MetricName, Entry][];
  const values = new Map<MetricName, number>(
    entries.filter(([, { unset, by }]) => !unset && !by).map(([name]) => [name, 0]),
  );
  const labelled = new Map<MetricName, Map<string, number>>();
  return {
    count: (name, by = 1) => void values.set(name, (values.get(name) ?? 0) + by),
    countOne(name, label) {
      const ofName = labelled.get(name) ?? new Map<string, number>();
      labelled.set(name, ofName.set(label, (ofName.get(label) ?? 0) + 1));
    },
    set: (name, value) => void values.set(name, value),
    value: (name) => values.get(name),
    text: () =>
      entries
        .map(([name, { kind, help, by }]) => {
          const value = values.get(name);
          const head = `# HELP ${PREFIX}${name} ${help}\n# TYPE ${PREFIX}${name} ${kind}\n`;
          const lines = [...(labelled.get(name) ?? [])].map(
            ([label, times]) => `${PREFIX}${name}{${by}="${label}"} ${times}\n`,
          );
          if (by) return lines.length === 0 ? "" : head + lines.join("");
          return value === undefined ? "" : `${head}${PREFIX}${name} ${value}\n`;
        })
        .join(""),
  };
}
