// The agent's memory of its tasks, on disk. It decides what may run again after a crash: a task that
// was started and is not idempotent never does. Results stay until the server has accepted or rejected them.
//
// Only records whose loss would be visible wait for the disk: that a task which must not run twice
// has started, and its result. Params are never written: the server offers a lost task again.

import type { Held, TaskResultReport } from "@holdfast/contracts/node/protocol";
import { explainWriteError, HostProblem } from "../identity/state-directory.ts";
import { lockStateDirectory } from "./lock.ts";
import { openRecordFiles, type RecordFiles } from "./record-files.ts";
import { openStorage, type Storage } from "./storage.ts";
import {
  type ClaimedTask,
  type InterruptedTask,
  type JournalRecord,
  type JournalReport,
  reservedBytes,
  type TaskState,
  type TaskStates,
  taskStates,
} from "./task-states.ts";

export type { ClaimedTask, InterruptedTask, TaskState };

export type Journal<Report extends JournalReport = TaskResultReport> = {
  /** How many more tasks with results of this size fit. Check it before taking tasks; 0 while the disk fails. */
  roomFor(resultBytes: number): number;
  /** Throws HostProblem `disk_full` without room, and an Error when the task is not `unknown`. */
  claimed(task: ClaimedTask): void;
  /**
   * Resolves when the task may run: for one that is not idempotent, when that is on disk. Rejected: do not run it;
   * it may be tried again.
   */
  started(taskId: string): Promise<void>;
  /** Claimed and not run: forgotten, so that a new offer of it is new. */
  dropped(taskId: string): void;
  /**
   * Resolves when the result may be posted: for a task that is not idempotent, when it is on disk. Concurrent
   * results share one sync. When it rejects (HostProblem: the disk fails), the result is still in `unsent()`
   * and should be posted anyway. A task can end without having been started: refused, cancelled.
   */
  result(report: Report): Promise<void>;
  /** The server gave a verdict: the result is gone, the id stays known until the task expires. */
  settled(taskIds: readonly string[]): void;
  /** Offered again with a newer generation: the result is, or will be, for that one. */
  regenerated(taskId: string, generation: number): void;
  stateOf(taskId: string): TaskState;
  /** In the order they ended. */
  unsent(): Report[];
  unsentCount(): number;
  /** For `holding`: everything claimed and not settled, running tasks first, then unsent results. */
  held(): Held[];
  /** Interrupted tasks found at opening: each has to be recovered and gets a result, for which room is reserved. */
  interrupted(): InterruptedTask[];
  /** Human-readable damage that was found at opening, for a diagnostic record. */
  readonly damage: string | undefined;
  /** Also releases the lock on the directory. */
  close(): Promise<void>;
};

export type JournalOptions = {
  /** Of each of the two files. */
  sizeBytes?: number;
  now?: () => number;
  /** The setting that names the directory, for errors. */
  setting?: string;
  /** What to do if another agent uses the directory, beside stopping it. */
  alternative?: string;
};

const DEFAULT_SIZE_BYTES = 8 * 1024 * 1024;

/** Throws HostProblem (`disk_full`, `state_dir_read_only`), or a UsageError when another agent runs on the directory. */
export function openJournal<Report extends JournalReport = TaskResultReport>(
  directory: string,
  options: JournalOptions = {},
): Journal<Report> {
  const lock = lockStateDirectory(directory, options.setting, options.alternative);
  try {
    const storage = openStorage(directory, options.sizeBytes ?? DEFAULT_SIZE_BYTES, options.setting);
    const journal = journalOn<Report>(storage, { directory, now: options.now ?? Date.now });
    return {
      ...journal,
      async close() {
        await journal.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The journal on any disk; `directory` is only named in errors. */
export function journalOn<Report extends JournalReport = TaskResultReport>(
  storage: Storage,
  { directory, now }: { directory: string; now: () => number },
): Journal<Report> {
  const states = taskStates<Report>(idBudget(storage.capacity));
  const files = openRecordFiles(storage, (payload) => {
    states.apply(JSON.parse(payload) as JournalRecord<Report>, Buffer.byteLength(payload));
  });
  states.restart();
  return journalOf(states, diskWriter(files, states, { directory, now }), {
    ...{ directory, now },
    capacity: storage.capacity,
    damage: files.damage,
    close: () => storage.close(),
  });
}

/** Share of the capacity for ids that may be forgotten early. */
export const idBudget = (capacity: number) => capacity / 8;

/** Where records go besides the state, if anywhere. */
export type RecordWriter<Report> = {
  /** Written and in the state, or neither. */
  write(record: JournalRecord<Report>): void;
  /** In the state in any case. */
  writeEvenIfItFails(record: JournalRecord<Report>): void;
  /** For records that may be lost: in the state at once, in the file as soon as possible. */
  writeIfPossible(record: JournalRecord<Report>): void;
  sync(): Promise<void>;
  works(): boolean;
  settle(): Promise<void>;
};

/** The rules of the journal, whatever it is written on. `directory` is only named in errors. */
export function journalOf<Report extends JournalReport>(
  states: TaskStates<Report>,
  disk: RecordWriter<Report>,
  options: {
    directory: string;
    now: () => number;
    capacity: number;
    damage?: string | undefined;
    close: () => void;
  },
): Journal<Report> {
  const { directory, now } = options;
  const interrupted = new Set(states.startedTasks().map(({ task_id }) => task_id));
  // The rest is for records between two rewrites: with too little of it, every record would cost one.
  const budget = options.capacity / 2;
  const room = () => budget - states.neededBytes();

  return {
    damage: options.damage,
    roomFor: (resultBytes) => (disk.works() ? Math.max(0, Math.floor(room() / reservedBytes(resultBytes))) : 0),
    claimed({ task_id, generation, type, expires_at, idempotent, resultBytes }) {
      // Only these fields: the params of an offer must not be stored.
      const task = { task_id, generation, type, expires_at, idempotent, resultBytes };
      const known = states.stateOf(task.task_id, now());
      if (known !== "unknown") throw new Error(`The task ${task.task_id} cannot be claimed: it is ${known}.`);
      if (reservedBytes(task.resultBytes) > room()) {
        throw new HostProblem(
          "disk_full",
          `The journal in ${directory} has no room for the result of another task. It takes tasks again when ` +
            "results were delivered.",
        );
      }
      disk.write({ kind: "claimed", task });
    },
    async started(taskId) {
      const state = states.stateOf(taskId, now());
      if (state !== "held" && state !== "started")
        throw new Error(`The task ${taskId} is ${state}: it cannot start.`);
      const record = { kind: "started", task_id: taskId } as const;
      // After a restart it makes no difference whether it had started: nothing to write.
      if (states.claimOf(taskId)?.idempotent) return states.apply(record, 0);
      disk.write(record);
      await disk.sync();
    },
    dropped(taskId) {
      if (states.claimOf(taskId)) disk.writeIfPossible({ kind: "dropped", task_id: taskId });
    },
    async result(report) {
      const claim = states.claimOf(report.task_id);
      const known = states.stateOf(report.task_id, now());
      if (!claim || known === "unsent") throw new Error(`A result for ${report.task_id}, which is ${known}.`);
      interrupted.delete(report.task_id);
      disk.writeEvenIfItFails({ kind: "result", report });
      if (!claim.idempotent) await disk.sync();
    },
    settled(taskIds) {
      const known = taskIds.filter((taskId) => states.claimOf(taskId));
      if (known.length > 0) disk.writeIfPossible({ kind: "settled", task_ids: known });
    },
    regenerated(taskId, generation) {
      if ((states.claimOf(taskId)?.generation ?? generation) >= generation) return;
      disk.writeIfPossible({ kind: "regenerated", task_id: taskId, generation });
    },
    stateOf: (taskId) => states.stateOf(taskId, now()),
    unsent: states.unsent,
    unsentCount: states.unsentCount,
    held: states.held,
    interrupted: () => states.startedTasks().filter(({ task_id }) => interrupted.has(task_id)),
    async close() {
      await disk.settle();
      options.close();
    },
  };
}

/**
 * Puts records into the state and onto the disk. After a failed write or sync the content of the file is unknown:
 * everything is rewritten, from memory into the other file, before anything is appended again.
 */
function diskWriter<Report extends JournalReport>(
  files: RecordFiles,
  states: TaskStates<Report>,
  { directory, now }: { directory: string; now: () => number },
): RecordWriter<Report> {
  let failed = false;
  let triedAt = 0;
  let rememberedAtPurge = 0;
  let lastSync: Promise<void> = Promise.resolve();

  function rewrite(): void {
    states.forgetExpired(now());
    rememberedAtPurge = states.rememberedCount();
    files.rewrite(payloadsOf(states));
    failed = false;
  }

  function append(payload: string): void {
    try {
      if (failed) rewrite();
      if (files.append(payload)) return;
      rewrite();
    } catch (error) {
      failed = true;
      throw explainWriteError(error, directory);
    }
    if (!files.append(payload)) throw new HostProblem("disk_full", `The journal in ${directory} is full.`);
  }

  function write(record: JournalRecord<Report>): void {
    const payload = JSON.stringify(record);
    append(payload);
    states.apply(record, Buffer.byteLength(payload));
  }

  function writeEvenIfItFails(record: JournalRecord<Report>): void {
    const payload = JSON.stringify(record);
    try {
      append(payload);
    } catch (error) {
      // The file now lacks a record that the state has.
      failed = true;
      throw error;
    } finally {
      states.apply(record, Buffer.byteLength(payload));
    }
  }

  return {
    write,
    writeEvenIfItFails,
    writeIfPossible(record: JournalRecord<Report>): void {
      try {
        writeEvenIfItFails(record);
      } catch {
        // `works()` reports it, and tries to repair it.
      }
      if (states.rememberedCount() > 2 * rememberedAtPurge + 1024) {
        states.forgetExpired(now());
        rememberedAtPurge = states.rememberedCount();
      }
    },
    sync(): Promise<void> {
      const synced = files.sync().catch((error: unknown) => {
        failed = true;
        throw explainWriteError(error, directory);
      });
      lastSync = synced.catch(() => {});
      return synced;
    },
    /** Retries on a failed disk, at most once a second. */
    works(): boolean {
      if (failed && now() - triedAt >= 1000) {
        triedAt = now();
        try {
          rewrite();
        } catch {
          failed = true;
        }
      }
      return !failed;
    },
    settle: () => lastSync,
  };
}

function* payloadsOf<Report extends JournalReport>(states: TaskStates<Report>): Generator<string> {
  for (const record of states.records()) yield JSON.stringify(record);
}
