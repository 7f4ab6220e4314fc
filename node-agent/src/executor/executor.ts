// Takes offered tasks, judges them, runs them within the limits of their types, and leaves every
// outcome in the journal. It never asks the server for anything but newer keys: what arrives late,
// twice or out of order is decided from the journal alone.

import { BATCH } from "@holdfast/contracts/node-limits";
import type {
  Held,
  Outcome,
  PhaseTimings,
  ProgressReport,
  TaskOffer,
  TaskResultReport,
} from "@holdfast/contracts/node-protocol";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import type { CommonFailure } from "@holdfast/contracts/task-failures";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { redact } from "@holdfast/kit/redact";
import type { Host } from "@holdfast/tasks/executor";
import { HostProblem } from "../identity/state-directory.ts";
import type { Journal } from "../journal/journal.ts";
import type { Log } from "../log.ts";
import { cancelled, describe, failed, interrupted, refused } from "./outcomes.ts";
import { createProgressReporter } from "./progress.ts";
import { type LoadedType, type RunningTask, runTask } from "./run.ts";
import { judgeContent, judgeOrigin, judgeTime } from "./verify.ts";

export type TaskEvent = "started" | "succeeded" | "failed" | "refused";

export type ExecutorOptions = {
  nodeId: string;
  journal: Journal;
  /** Undefined: no such type. */
  loadType: (name: string) => Promise<LoadedType | undefined>;
  verifiers: () => VerifierKeyring;
  /** Asks the server for the keys in force; resolves in any case. */
  refreshVerifiers: () => Promise<void>;
  host: () => Host;
  now: () => number;
  skewSeconds: () => number | undefined;
  sendProgress: (taskId: string, report: ProgressReport) => Promise<{ cancel: boolean }>;
  /** A result waits in the journal. */
  resultReady: () => void;
  /** Keeps results that the journal cannot take: lost with the process, and then offered again. */
  volatile: { add(report: TaskResultReport): void; held(): Held[] };
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  count: (event: TaskEvent) => void;
  log: Log;
};

export type TaskExecutor = {
  /** Returns how many of these were not known: an offer of what is here, or was refused before, brings no work. */
  offer(offers: readonly TaskOffer[]): number;
  /** Answers how many of these were not being stopped already. */
  cancel(taskIds: readonly string[]): number;
  /** How many more tasks it would take now. */
  room(): number;
  /** Everything that is here and not settled. */
  holding(): Held[];
  running(): number;
  /** Tries again what had to wait for room or for the disk. */
  pump(): void;
  /** Takes nothing new; what runs gets so long to end, then is told to stop. */
  stop(withinMs: number): Promise<void>;
};

type Waiting = { offer: TaskOffer; type: LoadedType; params: unknown; claimed: boolean };
type Running = { offer: TaskOffer; type: LoadedType; task: RunningTask | undefined; done: Promise<void> };

/** Held at once, unsent results included: `holding` must fit into a URL. */
const MOST_HELD = 200;
/** What a task is taken to need in the journal before its type is known. */
const USUAL_RESULT_BYTES = 32 * 1024;
/** Of a refusal: nothing but its code and text. */
const REFUSAL_BYTES = 4096;

export function createExecutor(options: ExecutorOptions): TaskExecutor {
  const { journal, log } = options;
  /** Being judged: its type or a key is still to come. */
  const judging = new Map<string, TaskOffer>();
  /** Accepted; waits for a free place of its type, or for room in the journal. */
  const waiting = new Map<string, Waiting>();
  const running = new Map<string, Running>();
  const types = new Map<string, LoadedType>();
  let stopping = false;

  /** Whether there is anything new about it. */
  const take = (offer: TaskOffer): boolean => {
    if (stopping || judging.has(offer.task_id) || isAnswered(offer)) return false;
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
        refuse(offer, "task_replayed");
        return false;
      case "unknown":
        if (known) return false;
        judging.set(offer.task_id, offer);
        void judge(offer).finally(() => judging.delete(offer.task_id));
        return true;
    }
  };

  /** Its answer waits in memory: it is not given twice. */
  const isAnswered = ({ task_id, generation }: TaskOffer) =>
    options.volatile.held().some((one) => one.task_id === task_id && one.generation >= generation);

  const judge = async (offer: TaskOffer) => {
    try {
      let refusal = judgeOrigin(offer, judgeNow());
      if (refusal === "task_key_unknown") {
        await options.refreshVerifiers();
        refusal = judgeOrigin(offer, judgeNow());
      }
      if (refusal !== undefined) return refuse(offer, refusal);
      const type = types.get(offer.task_type) ?? (await loadType(offer.task_type));
      const host = options.host();
      const content = judgeContent(offer, type?.contract, host.capabilities);
      if ("refused" in content || type === undefined) {
        return refuse(offer, "refused" in content ? content.refused : "task_type_unknown");
      }
      waiting.set(offer.task_id, { offer, type, params: content.params, claimed: false });
      pump();
    } catch (error) {
      // A type that cannot be loaded is one this agent does not have.
      log.error("a task could not be judged", { task_id: offer.task_id, error: describe(error) });
      refuse(offer, "task_type_unknown");
    }
  };

  const judgeNow = () => ({
    nodeId: options.nodeId,
    verifiers: options.verifiers(),
    now: options.now(),
    skewSeconds: options.skewSeconds(),
  });

  const loadType = async (name: string) => {
    const loaded = await options.loadType(name);
    if (loaded) types.set(name, loaded);
    return loaded;
  };

  const pump = () => {
    for (const one of [...waiting.values()]) {
      const { offer, type } = one;
      if (stopping) return;
      const late = judgeTime(offer.expires_at, { now: options.now(), skewSeconds: options.skewSeconds() });
      if (late === "task_expired") {
        waiting.delete(offer.task_id);
        refuse(offer, late, { claimed: one.claimed });
      } else if (claim(one) && runningOf(type) < type.contract.concurrency) {
        waiting.delete(offer.task_id);
        start(one);
      }
    }
  };

  /** False: there is no room in the journal, or the disk fails; it waits, and the server knows it is here. */
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
    entry.done = execute(one, entry).finally(() => {
      running.delete(one.offer.task_id);
      pump();
    });
  };

  const execute = async (one: Waiting, entry: Running) => {
    const { offer } = one;
    try {
      await journal.started(offer.task_id);
    } catch (error) {
      // Nothing was done: it waits until the disk works again or its time is over.
      const reason = error instanceof HostProblem ? error.reason : "state_dir_read_only";
      options.record(reason, describe(error), offer.correlation_id);
      if (!stopping) waiting.set(offer.task_id, one);
      return;
    }
    options.count("started");
    try {
      await run(one, entry);
    } catch (error) {
      // Nothing in there should throw; whatever does must not leave a task without an end.
      await finish(entry.offer, failed("executor_failed", describe(error)), {});
    }
  };

  const run = async (one: Waiting, entry: Running) => {
    const { offer, type } = one;
    const reporter = createProgressReporter({
      send: (report) => options.sendProgress(offer.task_id, report),
      onCancel: () => entry.task?.stop("cancelled"),
    });
    entry.task = runTask({
      type,
      params: one.params,
      host: options.host(),
      onProgress: (progress) => reporter.tell({ generation: entry.offer.generation, ...progress }),
    });
    const { outcome, timings } = await entry.task.ended;
    reporter.end();
    // The server offers it again: an idempotent task that the agent's end cut short has no outcome yet.
    if (outcome.status === "interrupted" && type.contract.idempotent) return;
    await finish(entry.offer, outcome, timings);
  };

  const finish = async (offer: TaskOffer, outcome: Outcome, timings: PhaseTimings) => {
    const { task_id, generation, task_type, correlation_id } = offer;
    const failure = outcome.status === "succeeded" ? undefined : outcome.failure;
    options.count(
      outcome.status === "succeeded" ? "succeeded" : outcome.status === "refused" ? "refused" : "failed",
    );
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
      log.error("a result is not on disk; it is delivered from memory", { task_id, error: describe(error) });
    }
    options.resultReady();
  };

  const refuse = (offer: TaskOffer, code: CommonFailure, { claimed = false } = {}) => {
    const type = redact(String(offer.task_type)).slice(0, 64);
    options.record("task_refused", `${code}: task ${offer.task_id} of type ${type}`, offer.correlation_id);
    try {
      if (!claimed) journal.claimed({ ...claimOf(offer), type, idempotent: true, resultBytes: REFUSAL_BYTES });
    } catch {
      options.count("refused");
      const { task_id, generation } = offer;
      return options.volatile.add({ task_id, generation, timings: {}, outcome: refused(code) });
    }
    void finish(offer, refused(code), {});
  };

  const cancel = (taskId: string): boolean => {
    const queued = waiting.get(taskId);
    if (queued === undefined) return running.get(taskId)?.task?.stop("cancelled") ?? false;
    waiting.delete(taskId);
    if (claim(queued)) void finish(queued.offer, cancelled(), {});
    else {
      const { task_id, generation } = queued.offer;
      options.volatile.add({ task_id, generation, timings: {}, outcome: cancelled() });
    }
    return true;
  };

  const runningOf = (type: LoadedType) => [...running.values()].filter((one) => one.type === type).length;

  for (const { task_id, generation } of journal.interrupted()) {
    log.warn("a task was cut short by the end of the agent; it is not repeated", { task_id });
    void journal
      .result({ task_id, generation, timings: {}, outcome: interrupted() })
      .catch((error) => log.error("a result is not on disk", { task_id, error: describe(error) }))
      .then(options.resultReady);
  }

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
    running: () => running.size,
    pump,
    async stop(withinMs) {
      stopping = true;
      const ended = Promise.all([...running.values()].map((one) => one.done));
      const deadline = setTimeout(() => {
        for (const { task } of running.values()) task?.stop("agent_stops");
      }, withinMs);
      await ended;
      clearTimeout(deadline);
    },
  };
}

function claimOf({ task_id, generation, task_type, expires_at }: TaskOffer) {
  return { task_id, generation, type: task_type, expires_at };
}
