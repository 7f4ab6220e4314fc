// The task engine of one process: joins enqueueing, polls, results and waiting, and publishes changes between them and
// to the other replicas. All its state is in the database; what is in memory here only makes it fast.

import type { Held, ProgressReport, TaskResultReport, Verdict } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { openPool, type Sql, type Tx } from "../database/connect.ts";
import { type Awaited, type AwaitOptions, createAwaiting, type Revision } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { deliveryParameters } from "./delivery-queries.ts";
import { createEnqueue, type EnqueueOptions, type NewTask } from "./enqueue.ts";
import type { Poll, PollResponse } from "./held-polls.ts";
import type { StreamOptions, TaskStream } from "./held-streams.ts";
import { createPolls } from "./polls.ts";
import { selectRevisions, selectTask, type TaskRow } from "./queries.ts";
import { type Accepted, createResults } from "./results.ts";
import type { TaskVault } from "./secrets.ts";
import type { TaskSigner } from "./signing.ts";
import { requestCancel } from "./transitions/cancel.ts";
import { storeProgress } from "./transitions/progress.ts";
import { INITIAL_STATUS } from "./transitions/table.ts";

export type TaskEngine = {
  types: ReadonlyMap<string, AnyTaskType>;
  /**
   * In the producer's transaction. Refuses with task_type_unknown, task_params_invalid, capability_missing,
   * node_not_active or not_found.
   */
  enqueue(tx: Tx, task: NewTask, options?: EnqueueOptions): Promise<TaskRow>;
  /**
   * For producers inside the control plane that change nothing else: enqueues in a transaction of its own, with an
   * audit event, and waits for the end without polling the database. Undefined: not ended within that time.
   */
  run(task: NewTask, options: RunOptions): Promise<TaskEnding | undefined>;
  /** The first part of `run`: resolves when the task is stored and queued for the node. */
  start(task: NewTask): Promise<Pick<TaskRow, "id" | "revision">>;
  /** Call after the commit: wakes the node's poll. */
  enqueued(task: Pick<TaskRow, "id" | "node_id">): void;
  wait(nodeId: string, poll: Poll): Promise<PollResponse>;
  /** Offers tasks over a stream until it is detached. */
  attach(nodeId: string, stream: StreamOptions): TaskStream;
  renewLeases(nodeId: string, holding: Held[]): Promise<{ cancel: string[] }>;
  progress(nodeId: string, taskId: string, report: ProgressReport): Promise<{ cancel: boolean }>;
  /** `instanceId`: of the agent that reports them. */
  results(
    nodeId: string,
    reports: readonly TaskResultReport[],
    from?: { instanceId: string },
  ): Promise<{ task_id: string; verdict: Verdict }[]>;
  /** Undefined if the task does not exist. One that has ended does not change. */
  cancel(tx: Tx, taskId: string): Promise<TaskRow | undefined>;
  /** Call after the commit: notifies the node and waiting requests. */
  cancelled(task: Pick<TaskRow, "id" | "node_id" | "revision" | "finished_at">): void;
  /** Resolves when the revision is not that of `task`, the task has ended, or the time is over. */
  changed(task: Awaited, options: AwaitOptions): Promise<void>;
  stop(): Promise<void>;
};

export type RunOptions = {
  waitMs: number;
  signal?: AbortSignal;
};

export type TaskEnding = Pick<TaskRow, "id" | "status" | "result" | "failure">;

export type TaskPools = {
  /** Claims, leases, progress: a crash of the database may undo the last ones, and they are repeated. */
  swift: Sql;
  /** Results: on the disk before the node gets its response. */
  durable: Sql;
};

export function openTaskPools(options: { url: string; application: string }): TaskPools {
  const pool = { ...options, role: "holdfast_system" } as const;
  return {
    swift: openPool({ ...pool, max: 4, parameters: { ...deliveryParameters, synchronous_commit: "off" } }),
    durable: openPool({ ...pool, max: 4, parameters: deliveryParameters }),
  };
}

export function createTaskEngine(options: {
  pools: TaskPools;
  signals: Signals;
  signer: TaskSigner;
  vault: TaskVault;
  types: ReadonlyMap<string, AnyTaskType>;
  log: Log;
  /** Result statements under way at a time. */
  resultsAtOnce?: number;
  /** Called with every result that this replica accepts, when it is stored. */
  onTaken?: (accepted: readonly Accepted[]) => void;
}): TaskEngine {
  const { pools, signals, signer, vault, types, log } = options;
  const awaiting = createAwaiting({ sql: pools.swift, signals, log, topic: "task", read: selectRevisions });

  const publish = (changes: readonly Revision[]) => {
    awaiting.happened(changes);
    signals.publish(
      "task",
      changes.map((change) => change.id),
    );
  };
  /** A node whose poll is held here needs no notification. */
  const wakeNodes = (nodeIds: Iterable<string>) => {
    signals.publish(
      "node_work",
      [...new Set(nodeIds)].filter((id) => !polls.wake(id)),
    );
  };

  /** Tasks that `run` waits for. */
  const endings = new Map<string, (ending: TaskEnding) => void>();
  const enqueue = createEnqueue({
    sql: pools.durable,
    types,
    signer,
    vault,
    roomOf: (nodeId) => polls.roomOf(nodeId),
    offer: (nodeId, tasks) => polls.offer(nodeId, tasks),
  });

  const results = createResults({
    sql: pools.durable,
    types,
    atOnce: options.resultsAtOnce ?? RESULTS_AT_ONCE,
    onAccepted(accepted) {
      for (const { nodeId, taskId, ending } of accepted) {
        polls.resultAccepted(nodeId, taskId);
        endings.get(taskId)?.(ending);
      }
      options.onTaken?.(accepted);
      publish(accepted.map(({ taskId, revision }) => ({ id: taskId, revision, ended: true })));
      wakeNodes(accepted.filter((one) => one.ordered).map((one) => one.nodeId));
    },
  });
  const polls = createPolls({
    sql: pools.swift,
    signals,
    vault,
    log,
    onOffered(offers) {
      for (const offer of offers) results.rememberType(offer.id, offer.type);
      // Not worth a notification: other replicas find it within a second.
      awaiting.happened(offers);
    },
  });

  return {
    types,
    enqueue: enqueue.inTransaction,
    async start(task) {
      const { id, node_id, revision, status } = await enqueue.alone(task);
      if (status === INITIAL_STATUS) wakeNodes([node_id]);
      return { id, revision };
    },
    async run(task, { waitMs, signal }) {
      const { id, node_id, revision, status } = await enqueue.alone(task);
      // Still in the same event-loop turn as the offer, so its result cannot have arrived yet.
      const here = Promise.withResolvers<TaskEnding>();
      endings.set(id, here.resolve);
      if (status === INITIAL_STATUS) wakeNodes([node_id]);
      // Another replica may receive its result; it is then read after a signal, or by the check every second.
      const anywhere = awaiting.changed({ id, revision }, { waitMs, until: "end", ...(signal ? { signal } : {}) });
      try {
        const ended = await Promise.race([here.promise, anywhere]);
        if (ended) return ended;
        const row = await selectTask(pools.swift, id);
        return row?.finished_at ? row : undefined;
      } finally {
        endings.delete(id);
      }
    },
    enqueued: (task) => wakeNodes([task.node_id]),
    wait: (nodeId, poll) => polls.wait(nodeId, poll),
    attach: (nodeId, stream) => polls.attach(nodeId, stream),
    renewLeases: (nodeId, holding) => polls.renew(nodeId, holding),
    async progress(nodeId, taskId, report) {
      const type = await results.typeOf(taskId);
      const { cancel, revision } = await storeProgress(pools.swift, { nodeId, taskId }, progressOf(type, report));
      if (revision !== undefined) publish([{ id: taskId, revision, ended: false }]);
      return { cancel };
    },
    results: (nodeId, reports, from) => results.report({ nodeId, ...from }, reports),
    cancel: requestCancel,
    cancelled(task) {
      publish([{ id: task.id, revision: task.revision, ended: task.finished_at !== null }]);
      wakeNodes([task.node_id]);
    },
    changed: (task, waiting) => awaiting.changed(task, waiting),
    async stop() {
      await Promise.all([polls.stop(), enqueue.settled(), results.settled(), awaiting.stop()]);
    },
  };
}

/** While one waits for the disk, the next is filled. */
const RESULTS_AT_ONCE = 2;

/** Progress that does not match the schema of the type is left out: nothing depends on it. */
function progressOf(type: AnyTaskType | undefined, { generation, phase, data, timings }: ProgressReport) {
  const valid = type && data !== undefined ? type.progress.safeParse(data).data : undefined;
  return {
    generation,
    phase,
    progress: valid === undefined ? null : JSON.stringify(valid),
    timings: JSON.stringify(timings),
  };
}
