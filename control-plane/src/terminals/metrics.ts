// Metrics of terminals in the api.

import type { Metrics } from "@holdfast/service/metrics";
import type { Note } from "./lifecycle.ts";

export type TerminalMetrics = {
  failed(code: string): void;
  note(note: Note): void;
};

const BUCKETS = [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30];

export function measureTerminals(metrics: Metrics): TerminalMetrics {
  const failed = metrics.countByCode(
    "holdfast_terminal_failures_total",
    "Terminals that failed, by the code that says why",
  );
  const opened = metrics.count("holdfast_terminals_opened_total", "Terminals that came up");
  const seconds = metrics.observeSeconds(
    "holdfast_terminal_open_seconds",
    "Time from the request for a token to a running shell",
    BUCKETS,
  );
  return {
    failed,
    note(note) {
      if ((note.type === "failed" || note.type === "closed") && note.failure) failed(note.failure.code);
      if (note.type !== "opened") return;
      opened();
      seconds(note.seconds);
    },
  };
}
