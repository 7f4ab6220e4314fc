// What the modules of an api process use of terminals.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Metrics } from "@holdfast/service/metrics";
import type { Applied } from "./events.ts";
import type { TerminalLimits } from "./grants.ts";
import { measureTerminals, type TerminalMetrics } from "./metrics.ts";
import { outcomesOf, type TerminalOutcome } from "./outcomes.ts";
import type { Place } from "./place.ts";
import { type TerminalWatch, watchTerminals } from "./watch.ts";

export type Terminals = {
  limits: TerminalLimits;
  metrics: TerminalMetrics;
  watch: TerminalWatch;
  outcomeListeners: ((outcome: TerminalOutcome) => void)[];
  /** Call after the commit: counts what happened, and calls the listeners. */
  notice(applied: Applied | undefined): void;
  /** The state of the allocation or its node does not permit a terminal. */
  refused(place: Place, correlationId: string): void;
  /** Publishes to the gateways that follow this process. */
  publish(lines: readonly ServiceNews[]): void;
};

export function openTerminals(
  options: Parameters<typeof watchTerminals>[0] & Pick<Terminals, "limits" | "publish"> & { metrics: Metrics },
): Terminals {
  const { limits, publish, ...watched } = options;
  const metrics = measureTerminals(options.metrics);
  const outcomeListeners: Terminals["outcomeListeners"] = [];
  return {
    ...{ limits, metrics, outcomeListeners, publish, watch: watchTerminals(watched) },
    refused({ id: allocationId, node_id: nodeId, status }, correlationId) {
      // What operators or users decided is known. That an allocation failed is not up to either.
      if (status !== "failed") return;
      const refusal = { value: "terminal_token_mint_failed", at: new Date(), step: null } as const;
      for (const tell of outcomeListeners) tell({ nodeId, allocationId, ...refusal, correlationId });
    },
    notice(applied) {
      if (!applied) return;
      for (const note of applied.notes) metrics.note(note);
      for (const outcome of outcomesOf(applied)) for (const tell of outcomeListeners) tell(outcome);
    },
  };
}
