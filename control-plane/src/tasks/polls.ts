// Serves the nodes that wait for work, by a poll or over a stream. New work for a node wakes it, and all nodes woken
// together are served by one statement. A task that is created while its node waits here is claimed as it is inserted, and
// offered without a statement of its own. A task that was claimed for a poll or a stream which is gone is not lost: the
// next one does not hold it, and is offered it again.

import type { Held } from "@holdfast/contracts/node/protocol";
import { isUnavailable, type Sql } from "../database/connect.ts";
import type { Revision } from "../mechanisms/awaiting.ts";
import { createBatches } from "../mechanisms/batches.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { createBetweenPolls } from "./between-polls.ts";
import { selectDueNodes } from "./delivery-queries.ts";
import { createHeldPolls, emptyResponse, type HeldPoll, type Poll, type PollResponse } from "./held-polls.ts";
import { createHeldStream, type StreamOptions, type TaskStream, taskStreamOf } from "./held-streams.ts";
import { type OpenerOptions, opener, type TaskSecrets } from "./secrets.ts";
import { type Asking, type Delivered, deliver } from "./transitions/deliver.ts";

export type Polls = {
  wait(nodeId: string, poll: Poll): Promise<PollResponse>;
  /** Offers tasks over a stream until it is detached. */
  attach(nodeId: string, stream: StreamOptions): TaskStream;
  /** Renews the leases of what the node holds; returns what it must stop. */
  renew(nodeId: string, holding: Held[]): Promise<{ cancel: string[] }>;
  /** There is something for the node to claim or to stop. Returns whether its poll is held here. */
  wake(nodeId: string): boolean;
  /** How many tasks may be claimed for the node in advance: it waits here, or is about to poll again. */
  roomOf(nodeId: string): number;
  /** Offers tasks that were claimed in advance. */
  offer(nodeId: string, tasks: readonly Delivered[]): void;
  resultAccepted(nodeId: string, taskId: string): void;
  stop(): Promise<void>;
};

const CHECK_EVERY_MS = 1_000;
const MOST_IN_ONE = 256;

type PollsOptions = OpenerOptions & {
  /** Commits without waiting for the disk: a lost claim is made again. */
  sql: Sql;
  signals: Signals;
  /** Receives the offered tasks with their types, which are needed when the results arrive. */
  onOffered(offers: readonly (Revision & { type: string })[]): void;
};

export function createPolls(options: PollsOptions): Polls {
  const { sql, signals, log } = options;
  const secretsOf = opener(options);
  const held = createHeldPolls();
  const betweenPolls = createBetweenPolls({ onUndelivered: (nodeId) => offerAnywhere(nodeId) });
  let stopped = false;

  const deliveries = createBatches<Asking, Delivered[]>({
    most: MOST_IN_ONE,
    atOnce: 1,
    keyOf: (asking) => asking.nodeId,
    concernsAll: isUnavailable,
    run: async (asking) => {
      const rows = await deliverWithRetry(sql, asking);
      reportOffered(rows.filter((row) => !row.stop));
      const byNode = Map.groupBy(rows, (row) => row.node_id);
      return asking.map(({ nodeId }) => byNode.get(nodeId) ?? []);
    },
  });

  const reportOffered = (offered: readonly Delivered[]) =>
    options.onOffered(
      offered.map(({ task_id, revision, type }) => ({ id: task_id, revision, type, ended: false })),
    );

  const serve = (poll: HeldPoll) => {
    const isReady = !stopped && poll.isReady();
    poll.wokenAgain = !isReady || poll.serving !== undefined;
    if (!isReady) return;
    poll.serving ??= serveNow(poll);
  };

  const serveNow = async (poll: HeldPoll) => {
    try {
      do {
        poll.wokenAgain = false;
        const rows = await deliveries.add(poll.asking);
        if (rows.length === 0) continue;
        if (poll.done) offerAnywhere(poll.nodeId);
        else offerTo(poll, rows, { mayHaveMore: poll.wokenAgain });
      } while (poll.wokenAgain && !poll.done);
    } catch (error) {
      poll.fail(error);
    } finally {
      // In the same turn as the last look at `wokenAgain`: no wake falls in between.
      poll.serving = undefined;
    }
  };

  const offerTo = (poll: HeldPoll, rows: readonly Delivered[], { mayHaveMore }: { mayHaveMore: boolean }) => {
    const response = responseOf(rows, secretsOf);
    if (poll.stays) return poll.respond(response);
    const { nodeId, instanceId, asking } = poll;
    const offered = new Set(response.tasks.map((task) => task.task_id));
    if (offered.size > 0) {
      const isFull = offered.size >= asking.room;
      betweenPolls.begin(nodeId, { instanceId, offered, mayHaveMore: mayHaveMore || isFull });
    }
    poll.respond(response);
  };

  /** Without a statement the poll misses nothing: a new task was kept here, or wakes it; `checkDue` finds lost signals. */
  const begin = (poll: HeldPoll) => {
    const kept = betweenPolls.end(poll);
    if (kept === undefined) serve(poll);
    else if (kept.length > 0) offerTo(poll, kept, { mayHaveMore: false });
  };

  /** The node polls again after its heartbeat; tasks that are created for it in between are kept here. */
  const expectAgain = ({ nodeId, instanceId }: HeldPoll) => {
    if (held.of(nodeId).length > 0) return;
    betweenPolls.begin(nodeId, { instanceId, offered: new Set(), mayHaveMore: false });
  };

  /** Tasks were claimed for a poll that is gone: a newer one, here or at another replica, is offered them now. */
  const offerAnywhere = (nodeId: string) => {
    if (!wake(nodeId)) signals.publish("node_work", [nodeId]);
  };

  const wake = (nodeId: string): boolean => {
    const polls = held.of(nodeId);
    for (const poll of polls) serve(poll);
    betweenPolls.mayHaveMore(nodeId);
    return polls.length > 0;
  };

  /** In case a signal was lost: one statement for all nodes that wait here. */
  const checkDue = async () => {
    betweenPolls.forgetOlderThan(CHECK_EVERY_MS);
    if (held.isEmpty()) return;
    try {
      for (const { node_id, why } of await selectDueNodes(sql, held.heldTaskIds())) {
        const isConcerned = held.of(node_id).some((poll) => why === "stop" || poll.asking.room > 0);
        if (isConcerned) wake(node_id);
      }
    } catch (error) {
      log.warn({ err: error }, "could not check for work of waiting nodes");
    }
  };
  const checks = startChecks(CHECK_EVERY_MS, checkDue);
  const unsubscribe = [
    signals.subscribe("node_work", (nodeIds) => nodeIds.forEach(wake)),
    signals.onReconnected(checks.runNow),
  ];

  return {
    wake,
    roomOf(nodeId) {
      const [poll, another] = held.of(nodeId);
      if (poll) return another || !poll.isReady() ? 0 : poll.asking.room;
      return stopped ? 0 : betweenPolls.roomOf(nodeId);
    },
    offer(nodeId, tasks) {
      reportOffered(tasks);
      const [poll] = held.of(nodeId);
      // A statement under way for it may find more.
      if (poll) offerTo(poll, tasks.slice(0, poll.asking.room), { mayHaveMore: poll.serving !== undefined });
      else if (!betweenPolls.keep(nodeId, tasks)) offerAnywhere(nodeId);
    },
    wait(nodeId, request) {
      if (stopped || request.signal.aborted) return Promise.resolve(emptyResponse);
      const poll = held.open(nodeId, request, expectAgain);
      begin(poll);
      return poll.response;
    },
    attach(nodeId, options) {
      const stream = createHeldStream(nodeId, options, serve);
      return taskStreamOf(stream, held.attach(stream));
    },
    resultAccepted: betweenPolls.resultAccepted,
    async renew(nodeId, holding) {
      if (holding.length === 0) return { cancel: [] };
      const rows = await deliveries.add({ nodeId, room: 0, holding });
      return { cancel: rows.map((row) => row.task_id) };
    },
    async stop() {
      stopped = true;
      for (const end of unsubscribe) end();
      for (const poll of held.all()) if (!poll.stays) poll.respond(emptyResponse);
      betweenPolls.stop();
      await Promise.all([deliveries.settled(), checks.stop()]);
    },
  };
}

/** Runs it regularly and on demand, one at a time. */
function startChecks(everyMs: number, check: () => Promise<void>): { runNow(): void; stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const runNow = () => {
    running ??= check().finally(() => {
      running = undefined;
    });
  };
  const timer = setInterval(runNow, everyMs).unref();
  return {
    runNow,
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

/** Of two replicas that claim tasks of one order at the same moment, one is refused; it finds the other's claim then. */
async function deliverWithRetry(sql: Sql, asking: Asking[]): Promise<Delivered[]> {
  try {
    return await deliver(sql, asking);
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
    return deliver(sql, asking);
  }
}
const UNIQUE_VIOLATION = "23505";

function responseOf(
  rows: readonly Delivered[],
  secretsOf: (row: Delivered) => TaskSecrets | undefined,
): PollResponse {
  const offered = rows.filter((row) => !row.stop);
  // The statement returns its rows in no particular order.
  offered.sort((a, b) => b.priority - a.priority || (a.task_id < b.task_id ? -1 : 1));
  return {
    tasks: offered.map((row) => {
      const secrets = secretsOf(row);
      return {
        task_id: row.task_id,
        node_id: row.node_id,
        generation: row.generation,
        task_type: row.type,
        params: row.params,
        ...(secrets ? { secrets } : {}),
        expires_at: row.expires_at.toISOString(),
        signature: row.signature,
        correlation_id: row.correlation_id,
      };
    }),
    cancel: rows.filter((row) => row.stop).map((row) => row.task_id),
  };
}
