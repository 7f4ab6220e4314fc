// Runs one task to its end: with its time limit, its phases, and a way to stop it. It always ends: a type that does not
// stop when requested is abandoned after a grace period, and the task is reported without it.

import type { Outcome, PhaseTimings } from "@holdfast/contracts/node/protocol";
import type { CheckedTaskType } from "@holdfast/tasks/checked-type";
import { type Executor, type Host, TaskFailed } from "@holdfast/tasks/executor";
import type { Redaction } from "../execution/redaction/redactor.ts";
import { cancelled, describe, failed, interrupted, succeeded, thrown } from "./outcomes.ts";
import { measurePhases } from "./phases.ts";

export type LoadedType = { contract: CheckedTaskType; executor: Executor };
/** Why a task has to stop. */
export type StopReason = "cancelled" | "timed_out" | "agent_stops";

export type RunningTask = {
  /** Never rejects. */
  ended: Promise<{ outcome: Outcome; timings: PhaseTimings }>;
  /** False: it was already requested to stop, or has ended. */
  stop(reason: StopReason): boolean;
};

type Runnable = { taskId: string; type: LoadedType; host: Host; graceMs?: number };

/** How long a type may take to undo partial work. */
const graceMs: Record<StopReason, number> = { cancelled: 5_000, timed_out: 5_000, agent_stops: 1_000 };

export function runTask(
  options: Runnable & {
    params: unknown;
    secrets?: Readonly<Record<string, string>>;
    /** Removes the secrets from whatever the task reports; undefined: it has none. */
    redaction?: Pick<Redaction, "text" | "value"> | undefined;
    onProgress: (progress: { phase: string; data: unknown; timings: PhaseTimings }) => void;
  },
): RunningTask {
  const { taskId, params, secrets = {}, host, type, redaction } = options;
  const { contract, executor } = type;
  const shown = <Value>(value: Value): Value => (redaction ? (redaction.value(plain(value)) as Value) : value);
  const phases = measurePhases();
  let open = true;
  const progress = (phase: string, data?: unknown) => {
    if (!open) return;
    phases.enter(shown(phase));
    const known = data === undefined || contract.progress.safeParse(data).success;
    options.onProgress({
      phase: phases.current,
      data: known ? shown(data) : undefined,
      timings: phases.timings(),
    });
  };
  /** Before a message is cut to length: a part of a secret would not be found. */
  const withoutSecrets = (error: unknown): never => {
    if (!redaction) throw error;
    if (error instanceof TaskFailed) throw new TaskFailed(error.code, redaction.text(error.message));
    throw new Error(redaction.text(describe(error)));
  };
  const { ended, stop } = untilStopped({
    ...options,
    work: async (signal) => {
      const returned = await executor
        .run({ taskId, params, secrets, progress, signal, host, fail } as never)
        .catch(withoutSecrets);
      return succeeded(contract, shown(returned));
    },
    cancel: async (reason) =>
      executor.cancel?.({ taskId, params, host, fail, reason } as never).catch(withoutSecrets),
    unfinished: unfinishedRun,
  });
  return {
    stop,
    ended: ended.then((outcome) => {
      open = false;
      return { outcome, timings: phases.timings() };
    }),
  };
}

/**
 * Lets a type finish, undo or report what an earlier agent process began. The outcome is `interrupted` if the type has no
 * `recover`, or if that fails: the remaining state is unknown then.
 */
export function recoverTask(options: Runnable): RunningTask {
  const { taskId, host, type } = options;
  const { contract, executor } = type;
  const { ended, stop } = untilStopped({
    ...options,
    work: async (signal) => {
      const returned = await executor.recover?.({ taskId, signal, host, fail } as never);
      return returned === undefined ? interrupted() : succeeded(contract, returned);
    },
    unfinished: (_reason, problem) => interrupted(problem),
  });
  return { stop, ended: ended.then((outcome) => ({ outcome, timings: {} })) };
}

/** As it is reported: values that JSON omits or writes otherwise are not text yet. */
function plain<Value>(value: Value): Value {
  return value === undefined ? value : JSON.parse(JSON.stringify(value));
}

function untilStopped(
  options: Runnable & {
    work: (signal: AbortSignal) => Promise<Outcome>;
    cancel?: (reason: "cancelled" | "timed_out") => Promise<void>;
    /** The outcome of work that was stopped, or threw something else than a failure of its type. */
    unfinished: (reason: StopReason | undefined, problem: string | undefined) => Outcome;
  },
): { ended: Promise<Outcome>; stop(reason: StopReason): boolean } {
  const { contract } = options.type;
  const controller = new AbortController();
  const abandoned = Promise.withResolvers<void>();
  let stopReason: StopReason | undefined;
  let cancelling: Promise<string | undefined> | undefined;
  let grace: NodeJS.Timeout | undefined;
  let outcome: Outcome | undefined;
  let problem: string | undefined;
  let open = true;

  const stop = (reason: StopReason) => {
    if (stopReason !== undefined || !open) return false;
    stopReason = reason;
    grace = setTimeout(() => abandoned.resolve(), options.graceMs ?? graceMs[reason]);
    controller.abort(new Error(reason));
    if (reason !== "agent_stops") cancelling = options.cancel?.(reason).then(() => undefined, describe);
    return true;
  };
  const timeout = setTimeout(() => stop("timed_out"), contract.timeoutSeconds * 1000);

  const attempt = async () => {
    try {
      outcome = await options.work(controller.signal);
    } catch (error) {
      if (error instanceof TaskFailed) outcome = thrown(contract, error);
      else if (stopReason === undefined) problem = describe(error);
    }
    // The task ends only after `cancel` has finished.
    if (cancelling) problem = await cancelling;
  };
  const ended = Promise.race([attempt(), abandoned.promise]).then(() => {
    open = false;
    clearTimeout(timeout);
    clearTimeout(grace);
    return outcome ?? options.unfinished(stopReason, problem);
  });
  return { ended, stop };
}

function unfinishedRun(reason: StopReason | undefined, problem: string | undefined): Outcome {
  switch (reason) {
    case undefined:
      return failed("executor_failed", problem);
    case "cancelled":
      return cancelled(problem);
    case "timed_out":
      return failed("task_timed_out", problem);
    case "agent_stops":
      return interrupted();
  }
}

const fail = (code: string, message?: string) => new TaskFailed(code, message);
