// What the modules of an api process use of terminals.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Metrics } from "@holdfast/service/metrics";
import type { TerminalLimits } from "./grants.ts";
import { measureTerminals, type TerminalMetrics } from "./metrics.ts";
import { type TerminalWatch, watchTerminals } from "./watch.ts";

export type Terminals = {
  limits: TerminalLimits;
  metrics: TerminalMetrics;
  watch: TerminalWatch;
  /** Publishes to the gateways that follow this process. */
  publish(lines: readonly ServiceNews[]): void;
};

export function openTerminals(
  options: Parameters<typeof watchTerminals>[0] & Pick<Terminals, "limits" | "publish"> & { metrics: Metrics },
): Terminals {
  const { limits, metrics, publish, ...watched } = options;
  return { limits, metrics: measureTerminals(metrics), watch: watchTerminals(watched), publish };
}
