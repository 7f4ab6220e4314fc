// What the nouns of an api process have of terminals.

import type { Metrics } from "@holdfast/service/metrics";
import type { TerminalLimits } from "./grants.ts";
import { measureTerminals, type TerminalMetrics } from "./metrics.ts";
import { type TerminalWatch, watchTerminals } from "./watch.ts";

export type Terminals = { limits: TerminalLimits; metrics: TerminalMetrics; watch: TerminalWatch };

export function openTerminals(
  options: Parameters<typeof watchTerminals>[0] & { limits: TerminalLimits; metrics: Metrics },
): Terminals {
  const { limits, metrics, ...watched } = options;
  return { limits, metrics: measureTerminals(metrics), watch: watchTerminals(watched) };
}
