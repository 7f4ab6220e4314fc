// What is wrong with this agent and its host at the moment, as its heartbeats report it. It changes only when it is
// refreshed or something happens: reading it changes nothing. What begins or ends is written to the host's history.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { Finding } from "../diagnostics/self-checks.ts";

export type Findings = {
  current(): readonly Finding[];
  /** Looks at the host again. `others`: what other parts of the agent know. */
  refresh(others: readonly Finding[]): void;
  /** What the server offered as trust and was refused. Nothing changes by it; people should see it for a while. */
  trustRefused(refused: readonly string[]): void;
  /** Why results wait; undefined when they do not any more. */
  resultsWait(why: string | undefined): void;
};

/** Long enough for a person to see it: whoever offers wrong trust may do so once. */
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
      if (over.length > 0) record("process_alive", `no longer found: ${over.join(", ")}`);
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
