// What the journal's records mean: a pure fold of records into the present state. The same fold runs
// while the agent works and when a journal is read again, so both always agree.
//
// It also tracks the bytes that a rewritten journal would need at most, with
// every running task's largest result included, so that no task is claimed without room for its result.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Held, TaskResultReport } from "@holdfast/contracts/node/protocol";

/** What a journal stores of a result: tasks and executions have reports of their own form. */
export type JournalReport = Held;

export type ClaimedTask = {
  task_id: string;
  generation: number;
  type: string;
  /** As offered, ISO 8601. */
  expires_at: string;
  idempotent: boolean;
  /** The type's largest result; room for it is kept until the task has its result. */
  resultBytes: number;
};

/** Started before the agent ended, not idempotent, and without a result: it never runs again, and may be recovered. */
export type InterruptedTask = { task_id: string; generation: number; type: string };

/**
 * - `unknown`: never claimed, or claimed and forgotten by a restart (the server offers it again).
 * - `held`: claimed, not started. `started`: it may have done part of its work.
 * - `unsent`: its result waits for a verdict. `settled`: the server has accepted or rejected it; a new offer is a replay.
 */
export type TaskState = "unknown" | "held" | "started" | "unsent" | "settled";

type Remembered = { task_id: string; forgetAt: number; idempotent: boolean };

export type JournalRecord<Report = TaskResultReport> =
  | { kind: "claimed"; task: ClaimedTask }
  | { kind: "started"; task_id: string }
  /** Never started, and never will be: unknown again. */
  | { kind: "dropped"; task_id: string }
  | { kind: "result"; report: Report }
  | { kind: "regenerated"; task_id: string; generation: number }
  | { kind: "settled"; task_ids: readonly string[] }
  /** Settled ids, in a rewritten journal. */
  | { kind: "remembered"; tasks: Remembered[] };

type Task<Report> = {
  claim: ClaimedTask;
  claimBytes: number;
  started: boolean;
  report?: Report;
  /** What it needs at most, from now on. */
  bytes: number;
};

/** Everything of a report besides the result itself: ids, timings, or the text of a failure. */
const ENVELOPE_BYTES = 4096;
const USUAL_CLAIM_BYTES = 512;
/** The small records of one task (started, regenerated, settled) and what frames its records. */
const SMALL_RECORDS_BYTES = 512;
const REMEMBERED_OVERHEAD_BYTES = 64;
const REMEMBERED_PER_RECORD = 512;
/** The agent's clock, by which expiry is decided, may be off by this much. */
const REMEMBER_LONGER_MS = 2 * CLOCK_TOLERANCE_SECONDS * 1000;

export type TaskStates<Report extends JournalReport = TaskResultReport> = ReturnType<typeof taskStates<Report>>;

/** `mostIdempotentBytes`: ids of idempotent tasks are forgotten early beyond that; running one again does no harm. */
export function taskStates<Report extends JournalReport = TaskResultReport>(mostIdempotentBytes: number) {
  /** Claimed or started, without a result. */
  const running = new Map<string, Task<Report>>();
  /** In the order of their results. */
  const unsent = new Map<string, Task<Report>>();
  /** By id, when it may be forgotten. */
  const precious = new Map<string, number>();
  const droppable = new Map<string, number>();
  let keptBytes = 0;
  let preciousBytes = 0;
  let droppableBytes = 0;

  function put(map: Map<string, Task<Report>>, task: Task<Report>): void {
    drop(task.claim.task_id);
    map.set(task.claim.task_id, task);
    keptBytes += task.bytes;
  }

  function drop(taskId: string): void {
    keptBytes -= (running.get(taskId) ?? unsent.get(taskId))?.bytes ?? 0;
    running.delete(taskId);
    unsent.delete(taskId);
    if (precious.delete(taskId)) preciousBytes -= rememberedBytes(taskId);
    if (droppable.delete(taskId)) droppableBytes -= rememberedBytes(taskId);
  }

  function remember({ task_id, forgetAt, idempotent }: Remembered): void {
    drop(task_id);
    (idempotent ? droppable : precious).set(task_id, forgetAt);
    if (idempotent) droppableBytes += rememberedBytes(task_id);
    else preciousBytes += rememberedBytes(task_id);
    if (droppableBytes > mostIdempotentBytes) dropOldest(droppableBytes / 8);
  }

  /** Many at once: finding the oldest entry of a map costs more the more were deleted before it. */
  function dropOldest(bytes: number): void {
    const enough = droppableBytes - bytes;
    for (const taskId of droppable.keys()) {
      if (droppableBytes <= enough) return;
      drop(taskId);
    }
  }

  function settle(taskId: string): void {
    const task = running.get(taskId) ?? unsent.get(taskId);
    if (!task) return;
    const forgetAt = Date.parse(task.claim.expires_at) + REMEMBER_LONGER_MS;
    remember({ task_id: taskId, forgetAt, idempotent: task.claim.idempotent });
  }

  return {
    /** `payloadBytes`: of the record as it is written. */
    apply(record: JournalRecord<Report>, payloadBytes: number): void {
      switch (record.kind) {
        case "claimed": {
          const bytes = reservedBytes(record.task.resultBytes, payloadBytes);
          put(running, { claim: record.task, claimBytes: payloadBytes, started: false, bytes });
          return;
        }
        case "started": {
          const task = running.get(record.task_id);
          if (task) task.started = true;
          return;
        }
        case "dropped":
          drop(record.task_id);
          return;
        case "result": {
          const task = running.get(record.report.task_id);
          if (!task) return;
          // Offered again while it ran: the result is for the newest offer.
          const generation = Math.max(task.claim.generation, record.report.generation);
          const report = { ...record.report, generation };
          const claim = { ...task.claim, generation };
          const bytes = task.claimBytes + payloadBytes + SMALL_RECORDS_BYTES;
          put(unsent, { ...task, claim, report, bytes });
          return;
        }
        case "regenerated": {
          const task = running.get(record.task_id) ?? unsent.get(record.task_id);
          if (!task) return;
          task.claim = { ...task.claim, generation: record.generation };
          if (task.report) task.report = { ...task.report, generation: record.generation };
          return;
        }
        case "settled":
          for (const taskId of record.task_ids) settle(taskId);
          return;
        case "remembered":
          for (const one of record.tasks) remember(one);
          return;
        default:
          // Unknown records of a newer agent are skipped: this version does not depend on them.
          record satisfies never;
      }
    },

    /** After a restart: tasks that did not start, or may start again, are offered again by the server. */
    restart(): void {
      for (const [taskId, task] of [...running]) {
        if (!task.started || task.claim.idempotent) drop(taskId);
      }
    },

    forgetExpired(now: number): void {
      for (const ids of [precious, droppable]) {
        for (const [taskId, forgetAt] of [...ids]) if (forgetAt <= now) drop(taskId);
      }
    },

    /** The same state, in as few records as possible. */
    *records(): Generator<JournalRecord<Report>> {
      const tasks = [...remembered(precious, false), ...remembered(droppable, true)];
      for (let at = 0; at < tasks.length; at += REMEMBERED_PER_RECORD) {
        yield { kind: "remembered", tasks: tasks.slice(at, at + REMEMBERED_PER_RECORD) };
      }
      for (const { claim, started, report } of [...running.values(), ...unsent.values()]) {
        yield { kind: "claimed", task: claim };
        if (started) yield { kind: "started", task_id: claim.task_id };
        if (report) yield { kind: "result", report };
      }
    },

    /** What a rewritten journal needs at most, without the ids that may be forgotten early. */
    neededBytes: () => keptBytes + preciousBytes,
    rememberedCount: () => precious.size + droppable.size,

    stateOf(taskId: string, now: number): TaskState {
      const task = running.get(taskId);
      if (task) return task.started ? "started" : "held";
      if (unsent.has(taskId)) return "unsent";
      return (precious.get(taskId) ?? droppable.get(taskId) ?? 0) > now ? "settled" : "unknown";
    },
    claimOf: (taskId: string): ClaimedTask | undefined => (running.get(taskId) ?? unsent.get(taskId))?.claim,
    unsent: (): Report[] => [...unsent.values()].flatMap(({ report }) => report ?? []),
    unsentCount: () => unsent.size,
    held: (): Held[] =>
      [...running.values(), ...unsent.values()].map(({ claim: { task_id, generation } }) => ({
        task_id,
        generation,
      })),
    startedTasks: (): InterruptedTask[] =>
      [...running.values()]
        .filter(({ started }) => started)
        .map(({ claim: { task_id, generation, type } }) => ({ task_id, generation, type })),
  };
}

/** For a task without a result. */
export function reservedBytes(resultBytes: number, claimBytes = USUAL_CLAIM_BYTES): number {
  return claimBytes + SMALL_RECORDS_BYTES + ENVELOPE_BYTES + resultBytes;
}

function rememberedBytes(taskId: string): number {
  return Buffer.byteLength(taskId) + REMEMBERED_OVERHEAD_BYTES;
}

function remembered(ids: ReadonlyMap<string, number>, idempotent: boolean): Remembered[] {
  return Array.from(ids, ([task_id, forgetAt]) => ({ task_id, forgetAt, idempotent }));
}
