// Nodes between two polls: the last poll was answered, and the next one is expected within milliseconds. A task that is
// created meanwhile can be claimed in advance and is kept for that poll, and a poll without news
// costs no statement. All of it may be lost: a claimed task that the node does not hold is offered again.

import { BATCH } from "@holdfast/contracts/node/limits";
import type { Asking, Delivered } from "./transitions/deliver.ts";

export type BetweenPolls = {
  /** A poll was answered with these tasks. `mayHaveMore`: others may wait for the node in the database. */
  begin(nodeId: string, poll: { instanceId: string; offered: ReadonlySet<string>; mayHaveMore: boolean }): void;
  /**
   * The node polls again. Returns the tasks that were kept for it. Undefined: the database has to be queried, because the
   * node holds something, has not reported all results, or may have more than what was kept.
   */
  end(poll: { instanceId: string; asking: Asking }): readonly Delivered[] | undefined;
  /** Something new may wait for the node in the database. */
  mayHaveMore(nodeId: string): void;
  /** How many more tasks may be claimed for it in advance. */
  roomOf(nodeId: string): number;
  /** False: the node is not expected. */
  keep(nodeId: string, tasks: readonly Delivered[]): boolean;
  resultAccepted(nodeId: string, taskId: string): void;
  forgetOlderThan(ms: number): void;
  stop(): void;
};

type Absence = {
  instanceId: string;
  since: number;
  offered: ReadonlySet<string>;
  /** The offered tasks without a result so far. */
  unreported: Set<string>;
  kept: Delivered[];
  /** When it fires, the node is no longer expected here. */
  timeout?: NodeJS.Timeout;
  mayHaveMore: boolean;
};

/**
 * A node polls again when it has reported the results of short tasks, or after a few milliseconds. One that takes longer,
 * on a busy machine, finds its tasks in the queue: that costs a statement and nothing else.
 */
const EXPECTED_WITHIN_MS = 100;

export function createBetweenPolls(options: {
  /** The node did not poll here in time, or this process stops: tasks that were claimed for it have to be offered again. */
  onUndelivered(nodeId: string): void;
}): BetweenPolls {
  const absences = new Map<string, Absence>();
  const isExpected = ({ since }: Absence) => performance.now() - since < EXPECTED_WITHIN_MS;

  /** The node went to another replica, where its poll may be waiting already. */
  const expire = (nodeId: string, absence: Absence) => {
    if (absences.get(nodeId) !== absence) return;
    absences.delete(nodeId);
    options.onUndelivered(nodeId);
  };

  return {
    begin(nodeId, { instanceId, offered, mayHaveMore }) {
      const since = performance.now();
      absences.set(nodeId, { instanceId, since, offered, unreported: new Set(offered), kept: [], mayHaveMore });
    },
    end({ instanceId, asking }) {
      const absence = absences.get(asking.nodeId);
      absences.delete(asking.nodeId);
      clearTimeout(absence?.timeout);
      const isUpToDate =
        absence?.instanceId === instanceId &&
        !absence.mayHaveMore &&
        absence.unreported.size === 0 &&
        asking.holding.length === 0;
      return isUpToDate && absence.kept.length <= asking.room ? absence.kept : undefined;
    },
    mayHaveMore(nodeId) {
      const absence = absences.get(nodeId);
      if (absence) absence.mayHaveMore = true;
    },
    roomOf(nodeId) {
      const absence = absences.get(nodeId);
      return absence && isExpected(absence) ? BATCH - absence.kept.length : 0;
    },
    keep(nodeId, tasks) {
      const absence = absences.get(nodeId);
      if (!absence) return false;
      // A poll in between may have got them by its own statement.
      absence.kept.push(...tasks.filter((task) => !absence.offered.has(task.task_id)));
      absence.timeout ??= setTimeout(() => expire(nodeId, absence), EXPECTED_WITHIN_MS).unref();
      return true;
    },
    resultAccepted: (nodeId, taskId) => void absences.get(nodeId)?.unreported.delete(taskId),
    forgetOlderThan(ms) {
      const oldest = performance.now() - ms;
      for (const [nodeId, { since }] of absences) if (since < oldest) absences.delete(nodeId);
    },
    stop() {
      for (const [nodeId, { timeout, kept }] of absences) {
        clearTimeout(timeout);
        if (kept.length > 0) options.onUndelivered(nodeId);
      }
    },
  };
}
