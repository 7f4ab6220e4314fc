// Runs one task to its end: with its time limit, its phases, and a way to stop it. It always ends:
// a type that does not stop when told is left behind after a grace, and the task reported without it.

import type { Outcome, PhaseTimings } from "@holdfast/contracts/node-protocol";
import { type Executor, type Host, TaskFailed } from "@holdfast/tasks/executor";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { cancelled, failed, interrupted, succeeded, thrown } from "./outcomes.ts";
import { measurePhases } from "./phases.ts";

export type LoadedType = { contract: AnyTaskType; executor: Executor };
/** Why a task is told to stop. */
export type StopReason = "cancelled" | "timed_out" | "agent_stops";

export type RunningTask = {
  /** Never rejects. */
  ended: Promise<{ outcome: Outcome; timings: PhaseTimings }>;
  /** False: it was told before, or has ended. */
  stop(reason: StopReason): boolean;
};

/** How long a type may take to undo what is half done. */
const graceMs: Record<StopReason, number> = { cancelled: 5_000, timed_out: 5_000, agent_stops: 1_000 };

export function runTask(options: {
  type: LoadedType;
  params: unknown;
  host: Host;
  onProgress: (progress: { phase: string; data: unknown; timings: PhaseTimings }) => void;
  graceMs?: number;
}): RunningTask {
  const { contract, executor } = options.type;
  const phases = measurePhases();
  const controller = new AbortController();
  const abandoned = Promise.withResolvers<void>();
  let stopReason: StopReason | undefined;
  let grace: NodeJS.Timeout | undefined;
  let open = true;

  const stop = (reason: StopReason) => {
    if (stopReason !== undefined || !open) return false;
    stopReason = reason;
    grace = setTimeout(() => abandoned.resolve(), options.graceMs ?? graceMs[reason]);
    controller.abort(new Error(reason));
    return true;
  };
  const timeout = setTimeout(() => stop("timed_out"), contract.timeoutSeconds * 1000);

  const progress = (phase: string, data?: unknown) => {
    if (!open) return;
    phases.enter(phase);
    const known = data === undefined || contract.progress.safeParse(data).success;
    options.onProgress({ phase: phases.current, data: known ? data : undefined, timings: phases.timings() });
  };
  const work = async (): Promise<Outcome> => {
    try {
      const run = executor.run as (task: unknown) => Promise<unknown>;
      const returned = await run({
        params: options.params,
        progress,
        signal: controller.signal,
        host: options.host,
        fail: (code: string, message?: string) => new TaskFailed(code, message),
      });
      return succeeded(contract, returned);
    } catch (error) {
      return stopReason === undefined || error instanceof TaskFailed
        ? thrown(contract, error)
        : stopped(stopReason);
    }
  };
  const ended = Promise.race([work(), abandoned.promise]).then((outcome) => {
    open = false;
    clearTimeout(timeout);
    clearTimeout(grace);
    return { outcome: outcome ?? stopped(stopReason ?? "timed_out"), timings: phases.timings() };
  });
  return { ended, stop };
}

function stopped(reason: StopReason): Outcome {
  if (reason === "cancelled") return cancelled();
  return reason === "timed_out" ? failed("task_timed_out") : interrupted();
}
