// Reports to the server how far a task is: at most four times a second, only the newest, and without
// blocking the task. A lost report is not repeated; the response may request a stop.

import type { ProgressReport } from "@holdfast/contracts/node/protocol";
import { redact } from "@holdfast/kit/redact";

const EVERY_MS = 250;

export type ProgressReporter = {
  report(report: ProgressReport): void;
  /** Sends nothing more, so that no report arrives after the result. */
  end(): void;
};

export function createProgressReporter(options: {
  send: (report: ProgressReport) => Promise<{ cancel: boolean }>;
  onCancel: () => void;
  everyMs?: number;
}): ProgressReporter {
  const everyMs = options.everyMs ?? EVERY_MS;
  let newest: ProgressReport | undefined;
  let timer: NodeJS.Timeout | undefined;
  let sending = false;
  let ended = false;

  const send = async () => {
    if (newest === undefined || sending || timer || ended) return;
    const report = newest;
    newest = undefined;
    sending = true;
    timer = setTimeout(() => {
      timer = undefined;
      void send();
    }, everyMs);
    try {
      if ((await options.send(JSON.parse(redact(JSON.stringify(report))) as ProgressReport)).cancel && !ended)
        options.onCancel();
    } catch {
      // Lost: the next report supersedes it.
    } finally {
      sending = false;
      void send();
    }
  };
  return {
    report(report) {
      newest = report;
      void send();
    },
    end() {
      ended = true;
      clearTimeout(timer);
    },
  };
}
