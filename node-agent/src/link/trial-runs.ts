// Tries what the server offered, one change at a time and in parallel to the link, and adopts it once a request with it
// has succeeded. A failed candidate is retried with backoff; what works stays in force. While the link fails, the same
// trials look for settings that work.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { HostProblem } from "../identity/state-directory.ts";
import {
  type Attempt,
  attempts,
  contradiction,
  type Failures,
  isDue,
  type Situation,
  type Way,
} from "../identity/trials.ts";
import { classifyError } from "./failures.ts";

export type TrialRuns = {
  /** Starts the trials that are due; called after each heartbeat and each failure of the link. */
  consider(): void;
  /** What has failed so far, and why. */
  failing(): readonly FailedAttempt[];
  /** Resolves when no trial is in progress. */
  settled(): Promise<void>;
};

export type FailedAttempt = Failures & { attempt: Attempt; reason: DiagnosticReason; detail: string };

export type TrialRunsOptions = {
  /** Throws a HostProblem while this host has no usable identity. */
  situation: () => Situation;
  /** One authenticated request with these settings; throws when the server does not respond. */
  request: (way: Way) => Promise<void>;
  /** Writes the files, and uses it from then on. */
  adopt: (change: Partial<Way>) => void;
  onAdopted: (attempt: Attempt) => void;
  onFailure: (failed: FailedAttempt) => void;
  /** Monotonic. */
  now?: () => number;
};

export function createTrialRuns(options: TrialRunsOptions): TrialRuns {
  const now = options.now ?? (() => performance.now());
  let history = new Map<string, FailedAttempt>();
  let underWay: Promise<void> | undefined;

  const failed = (attempt: Attempt, error: unknown) => {
    const { reason, detail } = classifyError(error);
    const count = (history.get(attempt.key)?.count ?? 0) + 1;
    const record = { attempt, reason, detail, count, at: now() };
    history.set(attempt.key, record);
    options.onFailure(record);
  };

  /** Returns whether anything was adopted. */
  const tryOne = async (attempt: Attempt): Promise<boolean> => {
    try {
      const way = { ...options.situation().present, ...attempt.change };
      const problem = contradiction(way);
      if (problem !== undefined) throw new HostProblem("trust_bundle_invalid", problem);
      await options.request(way);
      options.adopt(attempt.change);
    } catch (error) {
      failed(attempt, error);
      return false;
    }
    options.onAdopted(attempt);
    return true;
  };

  const tryAll = async () => {
    for (;;) {
      const situation = options.situation();
      const all = attempts(situation);
      history = new Map([...history].filter(([key]) => all.some((one) => one.key === key)));
      const facts = { connected: situation.connected, now: now() };
      const due = all.find(({ key }) => isDue(history.get(key), facts));
      // The remaining attempts may change with every trial.
      if (!due) return;
      const adopted = await tryOne(due);
      if (adopted && !situation.connected) return;
    }
  };

  return {
    consider() {
      underWay ??= tryAll()
        // Without an identity there is nothing to try; the link reports that itself.
        .catch((error: unknown) => {
          if (!(error instanceof HostProblem)) throw error;
        })
        .finally(() => {
          underWay = undefined;
        });
    },
    failing: () => [...history.values()],
    settled: () => underWay ?? Promise.resolve(),
  };
}
