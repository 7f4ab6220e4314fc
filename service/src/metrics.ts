// Metrics in Prometheus' text form. Labels are low-cardinality only: route templates, never paths;
// reason codes, never messages.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";

export type Metrics = {
  registry: Registry;
  observeRequest(request: { method: string; route: string; status: number; seconds: number }): void;
  /** Counts by reason code; the name is made once. */
  countByCode(name: `holdfast_${string}_total`, help: string): (code: string) => void;
  /** Counts that are kept elsewhere because they change too often; read at each scrape. */
  totalsBy(
    label: string,
    name: `holdfast_${string}_total`,
    help: string,
    read: () => Readonly<Record<string, number>>,
  ): void;
  count(name: `holdfast_${string}_total`, help: string): () => void;
  /** Seconds, in these buckets. */
  observeSeconds(name: `holdfast_${string}_seconds`, help: string, buckets: number[]): (seconds: number) => void;
  /**
   * A number for each reason, read at each scrape. What cannot be read in time is left out:
   * no number is better than an old one.
   */
  gaugeByReason(name: `holdfast_${string}`, help: string, read: () => Promise<Record<string, number>>): void;
  /** Several numbers for each thing, from one read. A number that is undefined is left out. */
  gaugesBy<T>(
    label: string,
    read: () => Promise<ReadonlyMap<string, T>>,
    gauges: Readonly<Record<`holdfast_${string}`, { help: string; of(thing: T): number | undefined }>>,
  ): void;
};

const READ_WITHIN_MS = 2_000;
/** How often the event loop's lag is looked at. The library's own 10 ms would wake a process at rest a hundred times a second. */
const LAG_MS = 100;

export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_MS });
  const requests = new Histogram({
    name: "holdfast_http_request_seconds",
    help: "Time from a request's arrival to the end of its answer",
    labelNames: ["method", "route", "status"],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10],
    registers: [registry],
  });
  /** The library looks for a set of labels anew each time; there are few. */
  const perKind = new Map<string, { observe(seconds: number): void }>();
  const kindOf = (method: string, route: string, status: number) => {
    const name = `${method} ${status} ${route}`;
    const known = perKind.get(name) ?? requests.labels({ method, route, status: String(status) });
    perKind.set(name, known);
    return known;
  };
  return {
    registry,
    observeRequest: ({ method, route, status, seconds }) => kindOf(method, route, status).observe(seconds),
    countByCode(name, help) {
      const counter = new Counter({ name, help, labelNames: ["code"], registers: [registry] });
      return (code) => counter.inc({ code });
    },
    count(name, help) {
      const counter = new Counter({ name, help, registers: [registry] });
      return () => counter.inc();
    },
    observeSeconds(name, help, buckets) {
      const histogram = new Histogram({ name, help, buckets, registers: [registry] });
      return (seconds) => histogram.observe(seconds);
    },
    totalsBy(label, name, help, read) {
      const counter = new Counter({
        name,
        help,
        labelNames: [label],
        registers: [registry],
        collect() {
          counter.reset();
          for (const [value, total] of Object.entries(read())) counter.inc({ [label]: value }, total);
        },
      });
    },
    gaugeByReason(name, help, read) {
      const gauge = new Gauge({
        name,
        help,
        labelNames: ["reason"],
        registers: [registry],
        async collect() {
          const numbers = await inTime(read).catch(() => ({}));
          gauge.reset();
          for (const [reason, number] of Object.entries(numbers)) gauge.set({ reason }, number);
        },
      });
    },
    gaugesBy<T>(
      label: string,
      read: () => Promise<ReadonlyMap<string, T>>,
      gauges: Readonly<Record<string, { help: string; of(thing: T): number | undefined }>>,
    ) {
      // All gauges are collected at once, for one answer.
      let reading: Promise<ReadonlyMap<string, T>> | undefined;
      const readOnce = () => {
        reading ??= inTime(read)
          .catch(() => new Map<string, T>())
          .finally(() => {
            reading = undefined;
          });
        return reading;
      };
      for (const [name, { help, of }] of Object.entries(gauges)) {
        const gauge = new Gauge({
          ...{ name, help, labelNames: [label], registers: [registry] },
          async collect() {
            const things = await readOnce();
            gauge.reset();
            for (const [thing, value] of things) {
              const number = of(value);
              if (number !== undefined) gauge.set({ [label]: thing }, number);
            }
          },
        });
      }
    },
  };
}

async function inTime<T>(read: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("not read in time")), READ_WITHIN_MS);
  try {
    return await Promise.race([read(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
