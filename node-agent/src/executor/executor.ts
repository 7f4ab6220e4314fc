// Accepts offered tasks, verifies them, runs them within the limits of their types, and stores every outcome in the
// journal. It requests nothing but newer keys from the server: late, repeated and reordered offers are decided from the
// journal alone.

import { BATCH } from "@holdfast/contracts/node/limits";
import type { Held, ProgressReport, TaskOffer } from "@holdfast/contracts/node/protocol";
import { HostProblem } from "../identity/state-directory.ts";
import { type AdmissionOptions, type Admitted, createAdmission } from "./admission.ts";
import { cancelled, describe, failed } from "./outcomes.ts";
import { createProgressReporter } from "./progress.ts";
import { recoverInterrupted } from "./recovery.ts";
import { claimOf, createReports, type ReportOptions, type TaskEvent } from "./reports.ts";
import { type LoadedType, type RunningTask, runTask } from "./run.ts";
import { judgeTime } from "./verify.ts";

export type { TaskEvent };

export type ExecutorOptions = AdmissionOptions &
  ReportOptions & {
    sendProgress: (taskId: string, report: ProgressReport) => Promise<{ cancel: boolean }>;
  };

export type TaskExecutor = {
  /** Returns how many of these are new: an offer of a known or refused task adds no work. */
  offer(offers: readonly TaskOffer[]): number;
  /** Returns how many of these were not being stopped already. */
  cancel(taskIds: readonly string[]): number;
  /** How many more tasks it would take now. */
  room(): number;
  /** Everything that is not settled. */
  holding(): Held[];
  running(): number;
  /** Retries tasks that wait for room or for the disk. */
  pump(): void;
  /** Accepts no new tasks; running tasks get this long to end, then are stopped. */
  stop(withinMs: number): Promise<void>;
};

type Waiting = Admitted & { offer: TaskOffer; claimed: boolean };
type Running = { offer: TaskOffer; type: LoadedType; task: RunningTask | undefined; done: Promise<void> };

type Content = Pick<Admitted, "params" | "secrets">;

/** Held at once, unsent results included: `holding` must fit into a URL. */
const MOST_HELD = 200;
/** The assumed size of a task in the journal before its type is known. */
const USUAL_RESULT_BYTES = 32 * 1024;

export function createExecutor(configured: ExecutorOptions): TaskExecutor {
  const options = { ...configured, loadType: oncePerType(configured.loadType) };
  const { journal, log } = options;
  const reports = createReports(options);
  const admit = createAdmission(options);
  const execution = createExecution(options, reports);
  /** Being verified: its type or a key is still loading. */
  const judging = new Map<string, TaskOffer>();
  /** Accepted; waits for a free slot of its type, or for room in the journal. */
  const waiting = new Map<string, Waiting>();
  const running = new Map<string, Running>();
  let stopping = false;

  /** Whether there is anything new about it. */
  const take = (offer: TaskOffer): boolean => {
    if (stopping || judging.has(offer.task_id) || hasOutcomeInMemory(offer)) return false;
    const known = waiting.get(offer.task_id) ?? running.get(offer.task_id);
    if (known) known.offer = { ...known.offer, generation: Math.max(known.offer.generation, offer.generation) };
    switch (journal.stateOf(offer.task_id)) {
      case "held":
      case "started":
        journal.regenerated(offer.task_id, offer.generation);
        return false;
      case "unsent":
        journal.regenerated(offer.task_id, offer.generation);
        options.resultReady();
        return false;
      case "settled":
        reports.refuse(offer, "task_replayed", { claimed: false });
        return false;
      case "unknown":
        if (known) return false;
        judging.set(offer.task_id, offer);
        void judge(offer).finally(() => judging.delete(offer.task_id));
        return true;
    }
  };

  /** Its outcome is waiting for delivery, so it is not run again. */
  const hasOutcomeInMemory = ({ task_id, generation }: TaskOffer) =>
    options.volatile.held().some((one) => one.task_id === task_id && one.generation >= generation);

  const judge = async (offer: TaskOffer) => {
    const admitted = await admit(offer);
    if ("refused" in admitted) return reports.refuse(offer, admitted.refused, { claimed: false });
    waiting.set(offer.task_id, { offer, ...admitted, claimed: false });
    pump();
  };

  const pump = () => {
    for (const one of [...waiting.values()]) {
      const { offer, type, claimed } = one;
      if (stopping) return;
      const late = judgeTime(offer.expires_at, { now: options.now(), skewSeconds: options.skewSeconds() });
      if (late === "task_expired") {
        waiting.delete(offer.task_id);
        reports.refuse(offer, late, { claimed });
      } else if (claim(one) && runningOf(type) < type.contract.concurrency) {
        waiting.delete(offer.task_id);
        start(one);
      }
    }
  };

  /** False: the journal has no room, or the disk fails; the task waits, and the server knows that it is held. */
  const claim = (one: Waiting): boolean => {
    if (one.claimed) return true;
    const { idempotent, resultBytes } = one.type.contract;
    if (journal.roomFor(resultBytes) < 1) return false;
    try {
      journal.claimed({ ...claimOf(one.offer), idempotent, resultBytes });
      one.claimed = true;
    } catch (error) {
      log.warn("a task waits for room in the journal", { task_id: one.offer.task_id, error: describe(error) });
    }
    return one.claimed;
  };

  const start = (one: Waiting) => {
    const entry: Running = { offer: one.offer, type: one.type, task: undefined, done: Promise.resolve() };
    running.set(one.offer.task_id, entry);
    entry.done = execution(entry, one).then((started) => {
      running.delete(one.offer.task_id);
      if (started) pump();
      // Retried at the next heartbeat: an immediate retry would fail too.
      else if (!stopping) waiting.set(one.offer.task_id, one);
    });
  };

  const cancel = (taskId: string): boolean => {
    const queued = waiting.get(taskId);
    if (queued === undefined)
      return running.get(taskId)?.task?.stop("cancelled") ?? recovery.stop(taskId, "cancelled");
    waiting.delete(taskId);
    if (claim(queued)) void reports.finish(queued.offer, cancelled(), {});
    else reports.keepInMemory(queued.offer, cancelled());
    return true;
  };

  const runningOf = (type: LoadedType) => [...running.values()].filter((one) => one.type === type).length;

  const recovery = recoverInterrupted({ ...options, reports });

  return {
    offer: (offers) => offers.filter((offer) => take(offer)).length,
    cancel: (taskIds) => taskIds.filter((taskId) => cancel(taskId)).length,
    room() {
      if (stopping) return 0;
      const here = journal.held().length + judging.size + waiting.size + options.volatile.held().length;
      const places = MOST_HELD - here;
      return Math.max(0, Math.min(BATCH, places, journal.roomFor(USUAL_RESULT_BYTES) - waiting.size));
    },
    holding() {
      const held = journal.held();
      const known = new Set(held.map((one) => one.task_id));
      const queued = [...waiting.values()].map((one) => one.offer);
      const others = [...judging.values(), ...queued, ...options.volatile.held()];
      return [
        ...held,
        ...others
          .filter((one) => !known.has(one.task_id))
          .map(({ task_id, generation }) => ({ task_id, generation })),
      ];
    },
    running: () => running.size + recovery.count(),
    pump,
    async stop(withinMs) {
      stopping = true;
      const ended = Promise.all([...[...running.values()].map((one) => one.done), recovery.ended()]);
      const deadline = setTimeout(() => {
        for (const { task } of running.values()) task?.stop("agent_stops");
        recovery.stopAll("agent_stops");
      }, withinMs);
      await ended;
      clearTimeout(deadline);
    },
  };
}

/** Runs one task that is claimed. Resolves to false when it could not begin: it may be tried again. Never rejects. */
function createExecution(options: ExecutorOptions, reports: ReturnType<typeof createReports>) {
  const { journal } = options;

  const run = async (entry: Running, { params, secrets }: Content) => {
    const { type } = entry;
    const taskId = entry.offer.task_id;
    const reporter = createProgressReporter({
      send: (report) => options.sendProgress(taskId, report),
      onCancel: () => entry.task?.stop("cancelled"),
    });
    const redaction = await redactionOf(Object.values(secrets));
    entry.task = runTask({
      ...{ taskId, type, params, secrets, redaction, host: options.host() },
      onProgress: (progress) => reporter.report({ generation: entry.offer.generation, ...progress }),
    });
    const { outcome, timings } = await entry.task.ended;
    reporter.end();
    // An idempotent task that was cut short by the agent's exit has no outcome: the server offers it again.
    if (outcome.status === "interrupted" && type.contract.idempotent) return;
    await reports.finish(entry.offer, outcome, timings);
  };

  return async (entry: Running, content: Content): Promise<boolean> => {
    try {
      await journal.started(entry.offer.task_id);
    } catch (error) {
      // Nothing was done: it waits until the disk works again or its time is over.
      const reason = error instanceof HostProblem ? error.reason : "state_dir_read_only";
      options.record(reason, describe(error), entry.offer.correlation_id);
      return false;
    }
    options.count("started");
    try {
      await run(entry, content);
    } catch (error) {
      // Nothing in there should throw; if it does, the task must still get an outcome.
      await reports.finish(entry.offer, failed("executor_failed", describe(error)), {});
    }
    return true;
  };
}

/** Loaded for tasks with secrets only: most agents never need it. */
async function redactionOf(secrets: readonly string[]) {
  if (secrets.length === 0) return undefined;
  return (await import("../execution/redaction/redactor.ts")).createRedaction(secrets);
}

/** The same object for every task of a type: running tasks are counted by it. */
function oncePerType(load: ExecutorOptions["loadType"]): ExecutorOptions["loadType"] {
  const types = new Map<string, LoadedType>();
  return async (name) => {
    const type = types.get(name) ?? (await load(name));
    if (type) types.set(name, type);
    return type;
  };
}
