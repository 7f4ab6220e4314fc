// The path of a task through an agent: offered, journalled, run, its result delivered. It needs a journal: without one
// there is no pipeline, and the agent takes no tasks.

import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { createExecutor, type ExecutorOptions, type TaskExecutor } from "../executor/executor.ts";
import type { Journal } from "../journal/journal.ts";
import type { LinkCalls } from "../link/calls.ts";
import { retryDelay } from "../link/decisions.ts";
import { createOutbox, type Outbox } from "../link/outbox.ts";
import type { ResultWait } from "../link/result-wait.ts";

export type TaskPipeline = {
  journal: Journal;
  executor: TaskExecutor;
  outbox: Outbox;
  /** Returns how many of these were not known. */
  offer(offers: readonly TaskOffer[]): number;
};

export type PipelineOptions = Omit<ExecutorOptions, "sendProgress" | "resultReady" | "volatile" | "now"> & {
  client: () => Pick<LinkCalls, "results" | "progress">;
  resultWait: Pick<ResultWait, "settled" | "postponed">;
  /** Undefined: results are delivered again. */
  onResultsWait: (why: string | undefined) => void;
  onDeliveryFailed: () => void;
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
};

export function createTaskPipeline(options: PipelineOptions): TaskPipeline {
  const { journal, record, log } = options;
  /** Of the tasks that were offered and not settled yet, by their ids. */
  const correlations = new Map<string, string>();
  const correlationOf = (taskIds: string[]) => taskIds.map((id) => correlations.get(id)).find(Boolean);

  const outbox = createOutbox({
    journal,
    post: (results) => options.client().results(results),
    onFailure: (failure, failures, taskIds) => {
      const why = `${failure.reason}: ${failure.detail}`;
      options.onDeliveryFailed();
      options.onResultsWait(why);
      record("task_result_failed", why, correlationOf(taskIds));
      options.resultWait.postponed();
      return retryDelay({ ...failure, failures }, Math.random());
    },
    onSettled: (settled) => {
      options.onResultsWait(undefined);
      for (const { task_id, verdict } of settled) {
        correlations.delete(task_id);
        if (verdict !== "accepted") log.info(`result is ${verdict}`, { task_id });
      }
      executor.pump();
      options.resultWait.settled();
    },
    onRefused: (taskIds, why) =>
      record(
        "task_result_failed",
        `the server refused the form of ${taskIds.join(", ")}: ${why}`,
        correlationOf(taskIds),
      ),
    onDropped: ({ task_id }, why) => {
      correlations.delete(task_id);
      record("task_result_failed", `the server takes no result of ${task_id}: ${why}`);
    },
  });
  const executor = createExecutor({
    ...options,
    now: Date.now,
    sendProgress: (taskId, report) => options.client().progress(taskId, report),
    resultReady: outbox.poke,
    volatile: outbox.volatile,
  });

  return {
    journal,
    executor,
    outbox,
    offer(offers) {
      for (const { task_id, correlation_id } of offers) correlations.set(task_id, correlation_id);
      return executor.offer(offers);
    },
  };
}
