// Metrics in Prometheus' text form. Labels are low-cardinality only: route templates, never paths;
// reason codes, never messages.

import { Counter, collectDefaultMetrics, Histogram, Registry } from "@prometheus-io/client";

export type Metrics = {
  registry: Registry;
  observeRequest(request: { method: string; route: string; status: number; seconds: number }): void;
  /** Counts by reason code; the name is made once. */
  countByCode(name: `holdfast_${string}_total`, help: string): (code: string) => void;
};

export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "holdfast_http_request_seconds",
    help: "Time from a request's arrival to the end of its answer",
    labelNames: ["method", "route", "status"],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10],
    registers: [registry],
  });
  return {
    registry,
    observeRequest: ({ method, route, status, seconds }) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    countByCode(name, help) {
      const counter = new Counter({ name, help, labelNames: ["code"], registers: [registry] });
      return (code) => counter.inc({ code });
    },
  };
}
