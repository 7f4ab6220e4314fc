// The waiting of nodes for work. Each node has one held poll here; whoever has work for it wakes
// the poll, and all polls woken together are served by one statement. A task that is made while its
// node waits here is claimed as it is inserted, and handed over without a statement of its own. A task
// that was claimed for a poll which is gone is not lost: the next poll does not hold it, and is offered
// it again.

import { BATCH } from "@holdfast/contracts/node-limits";
import type { Held, TaskOffer } from "@holdfast/contracts/node-protocol";
import type { Log } from "@holdfast/service/log";
import { isUnavailable, type Sql } from "../database/connect.ts";
import type { Signals } from "../signals/signals.ts";
import { createBatches } from "./batches.ts";
import { selectDueNodes } from "./delivery-queries.ts";
import type { Revision } from "./queries.ts";
import { createTicks } from "./ticks.ts";
import { type Asking, type Delivered, deliver } from "./transitions/deliver.ts";

export type Poll = { instanceId: string; room: number; holding: Held[]; waitMs: number; signal: AbortSignal };
export type PollAnswer = { tasks: TaskOffer[]; cancel: string[] };

export type Polls = {
  wait(nodeId: string, poll: Poll): Promise<PollAnswer>;
  /** Renews the leases of what the node holds; tells what it must stop. */
  renew(nodeId: string, holding: Held[]): Promise<{ cancel: string[] }>;
  /** There is something for the node to take or to stop. Answers whether its poll is held here. */
  wake(nodeId: string): boolean;
  /** How many tasks may be claimed for the node before anybody asked: it waits here, or comes back at once. */
  takes(nodeId: string): number;
  /** Tasks that were claimed so. */
  hand(nodeId: string, tasks: readonly Delivered[]): void;
  /** The node's result was accepted. */
  ended(nodeId: string, taskId: string): void;
  stop(): Promise<void>;
};

/** A node whose poll was answered, and which is not back yet. */
type Away = {
  instanceId: string;
  since: number;
  given: ReadonlySet<string>;
  /** Of these, what it has not answered for. */
  unanswered: Set<string>;
  /** Handed over meanwhile. */
  kept: Delivered[];
  /** Until that is passed on. */
  patience?: NodeJS.Timeout;
  /** More may wait for it in the database. */
  more: boolean;
};

type HeldPoll = {
  nodeId: string;
  instanceId: string;
  asking: Asking;
  /** While a statement is under way for it. */
  serving: Promise<void> | undefined;
  /** Woken since that statement began: what woke it may have come too late for it. */
  wokenAgain: boolean;
  done: boolean;
  /** With nothing: nothing came in its time. */
  answer(answer: PollAnswer): void;
  fail(error: unknown): void;
};

const LOOK_EVERY_MS = 1_000;
const MOST_IN_ONE = 256;
/**
 * A node polls again when it has answered for short tasks, or after a few milliseconds. One that takes longer, on a busy
 * machine, finds its tasks in the queue: that costs a statement and nothing else.
 */
const BACK_WITHIN_MS = 100;
/** Polls that end with nothing end together: a node is not in a hurry to hear that. */
const TICK_MS = 100;
const nothing: PollAnswer = { tasks: [], cancel: [] };
const noTasks: ReadonlySet<string> = new Set();

export function createPolls(options: {
  /** Commits without waiting for the disk: a lost claim is made again. */
  sql: Sql;
  signals: Signals;
  log: Log;
  /** Tasks that were given out: their type is known when the result comes, and who waits for them is told. */
  onOffered(offers: readonly (Revision & { type: string })[]): void;
}): Polls {
  const { sql, signals, log } = options;
  const held = new Map<string, HeldPoll[]>();
  const away = new Map<string, Away>();
  const ticks = createTicks(TICK_MS);
  let stopped = false;

  const deliveries = createBatches<Asking, Delivered[]>({
    most: MOST_IN_ONE,
    atOnce: 1,
    keyOf: (asking) => asking.nodeId,
    concernsAll: isUnavailable,
    run: async (asking) => {
      const rows = await deliverOnceMore(sql, asking);
      tellOffered(rows.filter((row) => !row.stop));
      const byNode = Map.groupBy(rows, (row) => row.node_id);
      return asking.map(({ nodeId }) => byNode.get(nodeId) ?? []);
    },
  });

  const tellOffered = (offered: readonly Delivered[]) =>
    options.onOffered(
      offered.map(({ task_id, revision, type }) => ({ id: task_id, revision, type, ended: false })),
    );

  const serve = (poll: HeldPoll) => {
    poll.wokenAgain = poll.serving !== undefined;
    poll.serving ??= serveNow(poll);
  };

  const serveNow = async (poll: HeldPoll) => {
    try {
      do {
        poll.wokenAgain = false;
        const rows = await deliveries.add(poll.asking);
        if (rows.length === 0) continue;
        if (poll.done) passOn(poll.nodeId);
        else give(poll, rows, { more: poll.wokenAgain });
      } while (poll.wokenAgain && !poll.done);
    } catch (error) {
      poll.fail(error);
    } finally {
      // In the same breath as the last look at `wokenAgain`: no wake falls in between.
      poll.serving = undefined;
    }
  };

  const give = (poll: HeldPoll, rows: readonly Delivered[], { more }: Pick<Away, "more">) => {
    const answer = answerOf(rows);
    const given = new Set(answer.tasks.map((task) => task.task_id));
    if (given.size > 0) {
      const filled = given.size >= poll.asking.room;
      away.set(poll.nodeId, {
        instanceId: poll.instanceId,
        since: performance.now(),
        given,
        unanswered: new Set(given),
        kept: [],
        more: more || filled,
      });
    }
    poll.answer(answer);
  };

  /**
   * A node that comes straight back, has answered for all it was given and holds nothing need not ask the database:
   * whatever was made for it since was handed over here, or woke it; should a signal be lost, the next look finds it.
   */
  const welcome = (poll: HeldPoll) => {
    const { nodeId, instanceId, asking } = poll;
    const before = away.get(nodeId);
    away.delete(nodeId);
    clearTimeout(before?.patience);
    const known =
      before?.instanceId === instanceId &&
      !before.more &&
      before.unanswered.size === 0 &&
      asking.holding.length === 0;
    if (!known || before.kept.length > asking.room) return serve(poll);
    if (before.kept.length > 0) give(poll, before.kept, { more: false });
  };

  /** It comes back when it has sent its heartbeat: what is made for it meanwhile is known here. */
  const restUntilBack = ({ nodeId, instanceId }: HeldPoll) => {
    if (held.has(nodeId)) return;
    const none = { given: noTasks, unanswered: new Set<string>(), kept: [] };
    away.set(nodeId, { instanceId, since: performance.now(), ...none, more: false });
  };

  /** Claimed for a poll that is gone: whoever holds a newer one, here or elsewhere, is offered it now. */
  const passOn = (nodeId: string) => {
    if (!wake(nodeId)) signals.publish("node_work", [nodeId]);
  };

  /** It went to another replica, where it may be waiting already. */
  const giveUpOn = (nodeId: string, gone: Away) => {
    if (away.get(nodeId) !== gone) return;
    away.delete(nodeId);
    passOn(nodeId);
  };

  const wake = (nodeId: string): boolean => {
    const polls = held.get(nodeId);
    for (const poll of polls ?? []) serve(poll);
    const gone = away.get(nodeId);
    if (gone) gone.more = true;
    return polls !== undefined;
  };

  const remove = (poll: HeldPoll) => {
    const left = held.get(poll.nodeId)?.filter((one) => one !== poll) ?? [];
    if (left.length > 0) held.set(poll.nodeId, left);
    else held.delete(poll.nodeId);
  };

  const add = (poll: HeldPoll) => {
    const others = held.get(poll.nodeId) ?? [];
    for (const older of others.filter((one) => one.instanceId === poll.instanceId)) older.answer(nothing);
    held.set(poll.nodeId, [...(held.get(poll.nodeId) ?? []), poll]);
  };

  /** In case a signal was lost: one statement for all nodes that wait here. */
  let looking: Promise<void> | undefined;
  const look = async () => {
    const since = performance.now() - LOOK_EVERY_MS;
    for (const [nodeId, one] of away) if (one.since < since) away.delete(nodeId);
    if (held.size === 0) return;
    const heldIds: string[] = [];
    for (const polls of held.values()) {
      for (const { asking } of polls) for (const { task_id } of asking.holding) heldIds.push(task_id);
    }
    try {
      for (const { node_id, why } of await selectDueNodes(sql, heldIds)) {
        const takes = held.get(node_id)?.some((poll) => why === "stop" || poll.asking.room > 0);
        if (takes) wake(node_id);
      }
    } catch (error) {
      log.warn({ err: error }, "work of waiting nodes could not be looked for");
    }
  };
  const lookOnce = () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
  };
  const timer = setInterval(lookOnce, LOOK_EVERY_MS);
  timer.unref();
  const unsubscribe = [
    signals.subscribe("node_work", (nodeIds) => nodeIds.forEach(wake)),
    signals.onReconnected(lookOnce),
  ];

  return {
    wake,
    takes(nodeId) {
      const [poll, another] = held.get(nodeId) ?? [];
      if (poll) return another ? 0 : poll.asking.room;
      const gone = away.get(nodeId);
      return gone && isBack(gone) && !stopped ? BATCH - gone.kept.length : 0;
    },
    hand(nodeId, tasks) {
      tellOffered(tasks);
      const [poll] = held.get(nodeId) ?? [];
      // A statement under way for it may find more.
      if (poll) return give(poll, tasks.slice(0, poll.asking.room), { more: poll.serving !== undefined });
      const gone = away.get(nodeId);
      if (!gone) return passOn(nodeId);
      // A poll that came and went in between may have been given them by its own statement.
      gone.kept.push(...tasks.filter((task) => !gone.given.has(task.task_id)));
      gone.patience ??= setTimeout(() => giveUpOn(nodeId, gone), BACK_WITHIN_MS).unref();
    },
    wait(nodeId, { instanceId, room, holding, waitMs, signal }) {
      if (stopped || signal.aborted) return Promise.resolve(nothing);
      return new Promise((resolve, reject) => {
        const end = (settle: () => void) => {
          if (poll.done) return;
          poll.done = true;
          unwait();
          signal.removeEventListener("abort", abandon);
          remove(poll);
          settle();
        };
        const poll: HeldPoll = {
          nodeId,
          instanceId,
          asking: { nodeId, room, holding },
          serving: undefined,
          wokenAgain: false,
          done: false,
          answer: (answer) => end(() => resolve(answer)),
          fail: (error) => end(() => reject(error)),
        };
        const abandon = () => poll.answer(nothing);
        signal.addEventListener("abort", abandon);
        add(poll);
        // What is being claimed at that moment is still answered with.
        const unwait = ticks.after(waitMs, async () => {
          if (poll.serving) await poll.serving;
          if (poll.done) return;
          abandon();
          restUntilBack(poll);
        });
        welcome(poll);
      });
    },
    ended: (nodeId, taskId) => void away.get(nodeId)?.unanswered.delete(taskId),
    async renew(nodeId, holding) {
      if (holding.length === 0) return { cancel: [] };
      const rows = await deliveries.add({ nodeId, room: 0, holding });
      return { cancel: rows.map((row) => row.task_id) };
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      for (const end of unsubscribe) end();
      for (const poll of [...held.values()].flat()) poll.answer(nothing);
      for (const [nodeId, { patience, kept }] of away) {
        clearTimeout(patience);
        if (kept.length > 0) passOn(nodeId);
      }
      await Promise.all([deliveries.settled(), looking]);
    },
  };
}

/** Or will be in a moment. */
const isBack = (gone: Away) => performance.now() - gone.since < BACK_WITHIN_MS;

/** Two replicas that pick tasks of one order at the same moment: one is refused, and finds the other's work done. */
async function deliverOnceMore(sql: Sql, asking: Asking[]): Promise<Delivered[]> {
  try {
    return await deliver(sql, asking);
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
    return deliver(sql, asking);
  }
}
const UNIQUE_VIOLATION = "23505";

function answerOf(rows: readonly Delivered[]): PollAnswer {
  const offered = rows.filter((row) => !row.stop);
  // The statement answers in no order.
  offered.sort((a, b) => b.priority - a.priority || (a.task_id < b.task_id ? -1 : 1));
  return {
    tasks: offered.map((row) => ({
      task_id: row.task_id,
      node_id: row.node_id,
      generation: row.generation,
      task_type: row.type,
      params: row.params,
      expires_at: row.expires_at.toISOString(),
      signature: row.signature,
      correlation_id: row.correlation_id,
    })),
    cancel: rows.filter((row) => row.stop).map((row) => row.task_id),
  };
}
