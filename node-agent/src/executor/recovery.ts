// Recovers tasks that an earlier agent process started and did not finish, and that must not run again. Each gets exactly
// one outcome: that of its type's `recover`, or interrupted. Until then it stays in the journal as started, so that the
// next agent process repeats the recovery if this one ends.

import type { InterruptedTask, Journal } from "../journal/journal.ts";
import type { Log } from "../log.ts";
import type { AdmissionOptions } from "./admission.ts";
import { describe, interrupted } from "./outcomes.ts";
import type { Reports } from "./reports.ts";
import { type RunningTask, recoverTask, type StopReason } from "./run.ts";

export type Recovery = {
  count(): number;
  /** False: this task is not being recovered, or was stopped before. */
  stop(taskId: string, reason: StopReason): boolean;
  stopAll(reason: StopReason): void;
  /** Resolves when every task has its outcome, or was stopped. */
  ended(): Promise<unknown>;
};

export function recoverInterrupted(
  options: Pick<AdmissionOptions, "loadType" | "host"> & {
    journal: Pick<Journal, "interrupted">;
    reports: Pick<Reports, "finish">;
    log: Log;
  },
): Recovery {
  const { log } = options;
  const underWay = new Map<string, { task: RunningTask | undefined; stopped: StopReason | undefined }>();

  const outcomeOf = async ({ task_id, type: name }: InterruptedTask) => {
    const entry = underWay.get(task_id);
    const type = await options.loadType(name);
    if (!type?.executor.recover || !entry || entry.stopped) return interrupted();
    entry.task = recoverTask({ taskId: task_id, type, host: options.host() });
    return (await entry.task.ended).outcome;
  };

  const recover = async (task: InterruptedTask) => {
    const { task_id, generation, type: task_type } = task;
    log.warn("the agent ended while this task ran; it is not run again", { task_id });
    const outcome = await outcomeOf(task).catch((error: unknown) => interrupted(describe(error)));
    const stopped = underWay.get(task_id)?.stopped;
    underWay.delete(task_id);
    // No outcome yet: the next start calls `recover` again.
    if (outcome.status === "interrupted" && stopped === "agent_stops") return;
    await options.reports.finish({ task_id, generation, task_type }, outcome, {});
  };

  const stop: Recovery["stop"] = (taskId, reason) => {
    const entry = underWay.get(taskId);
    if (!entry || entry.stopped) return false;
    entry.stopped = reason;
    entry.task?.stop(reason);
    return true;
  };

  const found = options.journal.interrupted();
  for (const { task_id } of found) underWay.set(task_id, { task: undefined, stopped: undefined });
  const ended = Promise.all(found.map(recover));
  return {
    count: () => underWay.size,
    stop,
    stopAll: (reason) => {
      for (const taskId of [...underWay.keys()]) stop(taskId, reason);
    },
    ended: () => ended,
  };
}
