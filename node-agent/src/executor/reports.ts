// Stores the outcome of a task in the journal, from where it is delivered; in memory if the journal cannot take it.

import type { Held, Outcome, PhaseTimings, TaskOffer, TaskResultReport } from "@holdfast/contracts/node/protocol";
import type { CommonFailure } from "@holdfast/contracts/node/task-failures";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { redact } from "@holdfast/kit/redact";
import type { Journal } from "../journal/journal.ts";
import type { Log } from "../log.ts";
import { describe, refused } from "./outcomes.ts";

export type TaskEvent = "started" | "succeeded" | "failed" | "refused";

export type ReportOptions = {
  journal: Journal;
  /** Keeps results that the journal cannot take: lost with the process, and then offered again. */
  volatile: { add(report: TaskResultReport): void; held(): Held[] };
  /** A result waits in the journal. */
  resultReady: () => void;
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  count: (event: TaskEvent) => void;
  log: Log;
};

/** The fields of a task that a report contains. */
export type Reported = { task_id: string; generation: number; task_type: string; correlation_id?: string };

export type Reports = {
  /** Of a task that is in the journal. */
  finish(task: Reported, outcome: Outcome, timings: PhaseTimings): Promise<void>;
  refuse(offer: TaskOffer, code: CommonFailure, about: { claimed: boolean }): void;
  /** Of a task that the journal has no room for. */
  keepInMemory(task: Reported, outcome: Outcome): void;
};

/** For a refusal: only its code and text. */
const REFUSAL_BYTES = 4096;

export function createReports(options: ReportOptions): Reports {
  const { journal, log } = options;

  const finish: Reports["finish"] = async (task, outcome, timings) => {
    const { task_id, generation, task_type, correlation_id } = task;
    const failure = outcome.status === "succeeded" ? undefined : outcome.failure;
    options.count(countedAs(outcome));
    log[failure && outcome.status !== "cancelled" ? "warn" : "debug"](`task ${outcome.status}`, {
      task_id,
      task_type,
      correlation_id,
      code: failure?.code,
      message: failure?.message,
    });
    try {
      await journal.result({ task_id, generation, timings, outcome });
    } catch (error) {
      log.error("could not write a result to disk; delivering it from memory", {
        task_id,
        error: describe(error),
      });
    }
    options.resultReady();
  };

  const keepInMemory: Reports["keepInMemory"] = ({ task_id, generation }, outcome) =>
    options.volatile.add({ task_id, generation, timings: {}, outcome });

  return {
    finish,
    keepInMemory,
    refuse(offer, code, { claimed }) {
      const type = redact(String(offer.task_type)).slice(0, 64);
      options.record("task_refused", `${code}: task ${offer.task_id} of type ${type}`, offer.correlation_id);
      try {
        if (!claimed) journal.claimed({ ...claimOf(offer), type, idempotent: true, resultBytes: REFUSAL_BYTES });
      } catch {
        options.count("refused");
        return keepInMemory(offer, refused(code));
      }
      void finish(offer, refused(code), {});
    },
  };
}

export function claimOf({ task_id, generation, task_type, expires_at }: TaskOffer) {
  return { task_id, generation, type: task_type, expires_at };
}

function countedAs({ status }: Outcome): TaskEvent {
  return status === "succeeded" || status === "refused" ? status : "failed";
}
