// The current problems of this agent and its host, as its heartbeats report them. They change only on a refresh or an
// event: reading them has no side effects. The beginning and end of each is recorded in the host's history.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { NO_LONGER_FOUND } from "../diagnostics/connected.ts";
import type { Finding } from "../diagnostics/self-checks.ts";

export type Findings = {
  current(): readonly Finding[];
  /** Checks the host again. `others`: findings of other parts of the agent. Returns whether one began or ended. */
  refresh(others: readonly Finding[]): boolean;
  /** Trust that the server offered and the agent refused. Reported for a while, so that people see it. */
  trustRefused(refused: readonly string[]): void;
  /** Why results are waiting; undefined when they no longer are. */
  resultsWait(why: string | undefined): void;
};

/** Long enough for a person to see it: wrong trust may be offered only once. */
const REFUSAL_REPORTED_MS = 3_600_000;

export function createFindings(options: {
  check: () => readonly Finding[];
  record: (reason: DiagnosticReason, detail: string) => void;
  /** Monotonic. */
  now?: () => number;
}): Findings {
  const { record } = options;
  const now = options.now ?? (() => performance.now());
  let findings: readonly Finding[] = [];
  let waiting: Finding | undefined;
  let refused: (Finding & { until: number }) | undefined;

  return {
    current: () => findings,
    refresh(others) {
      const before = new Set(findings.map(({ reason }) => reason));
      const found = options.check();
      for (const { reason, detail } of found) if (!before.has(reason)) record(reason, detail);
      if (refused && refused.until < now()) refused = undefined;
      const own = [waiting, refused].filter((one) => one !== undefined);
      findings = [...found, ...others, ...own];
      const over = [...before].filter((reason) => !findings.some((one) => one.reason === reason));
      if (over.length > 0) record("process_alive", `${NO_LONGER_FOUND}${over.join(", ")}`);
      return over.length > 0 || findings.some(({ reason }) => !before.has(reason));
    },
    trustRefused(details) {
      if (details.length === 0) return;
      const detail = details.join("; ");
      record("trust_update_refused", detail);
      refused = { reason: "trust_update_refused", detail, until: now() + REFUSAL_REPORTED_MS };
    },
    resultsWait(why) {
      waiting = why === undefined ? undefined : { reason: "task_result_failed", detail: why };
    },
  };
}
