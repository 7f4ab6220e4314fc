// Delivers results at once, in batches, and retries until the server has accepted or rejected them. A
// failure here does not affect the task; its result stays in the journal.

import { BATCH, MOST_RESULTS_BODY_BYTES } from "@holdfast/contracts/node/limits";
import type { Held, TaskResultReport, Verdict } from "@holdfast/contracts/node/protocol";
import { failed } from "../executor/outcomes.ts";
import type { Journal } from "../journal/journal.ts";
import { type Classified, classify, type Failure, failureOf } from "./failures.ts";

export type Outbox = {
  /** There may be something to deliver. */
  poke(): void;
  /** For results that the journal could not store. */
  volatile: { add(report: TaskResultReport): void; held(): Held[] };
  /** The server is reachable again: skips the pause. */
  reconnected(): void;
  /** Resolves when nothing is left, or after that time. */
  flush(withinMs: number): Promise<void>;
  stop(): void;
};

export type OutboxOptions = {
  journal: Pick<Journal, "unsent" | "settled">;
  post: (results: TaskResultReport[]) => Promise<{ verdicts: { task_id: string; verdict: Verdict }[] }>;
  /** Called before every new attempt; returns how long to wait. */
  onFailure: (failure: Classified, failures: number, taskIds: string[]) => number;
  onSettled: (settled: readonly { task_id: string; verdict: Verdict }[]) => void;
  /** The server refused the format of these; they are sent again, one by one or as a failure. */
  onRefused: (taskIds: string[], why: string) => void;
  /** A result that the server will never accept. */
  onDropped: (report: TaskResultReport, why: string) => void;
};

/** Below the server's limit, by the overhead around the results. */
const MOST_BYTES = MOST_RESULTS_BODY_BYTES - 4096;

export function createOutbox(options: OutboxOptions): Outbox {
  const { journal } = options;
  const volatile = new Map<string, TaskResultReport>();
  /** Replaces a result whose format the server refused. */
  const replaced = new Map<string, TaskResultReport>();
  let delivering: Promise<void> | undefined;
  let wake: (() => void) | undefined;
  let failures = 0;
  /** After a refused batch, this many results are sent one by one. */
  let alone = 0;
  let stopped = false;

  const pending = () => {
    const all = [...journal.unsent(), ...volatile.values()];
    return replaced.size === 0 ? all : all.map((one) => inPlaceOf(one));
  };
  /** With the generation of the newest offer. */
  const inPlaceOf = (report: TaskResultReport) => {
    const instead = replaced.get(report.task_id);
    return instead ? { ...instead, generation: report.generation } : report;
  };

  const deliver = async () => {
    for (;;) {
      const batch = takeBatch(pending(), { most: alone > 0 ? 1 : BATCH, mostBytes: MOST_BYTES });
      if (batch.length === 0 || stopped) return;
      try {
        settle((await options.post(batch)).verdicts, batch);
        failures = 0;
      } catch (error) {
        const failure = failureOf(error);
        if (isRefusedByForm(failure)) setAside(batch, classify(failure).detail);
        else {
          const taskIds = batch.map((one) => one.task_id);
          await pause(options.onFailure(classify(failure), failures++, taskIds));
        }
      }
    }
  };

  const settle = (verdicts: readonly { task_id: string; verdict: Verdict }[], batch: TaskResultReport[]) => {
    const sent = new Set(batch.map((one) => one.task_id));
    const settled = verdicts.filter((one) => sent.has(one.task_id));
    if (settled.length === 0) throw new Error("the server returned no verdict on the delivered results");
    forget(settled.map((one) => one.task_id));
    options.onSettled(settled);
  };

  const forget = (taskIds: string[]) => {
    journal.settled(taskIds);
    for (const taskId of taskIds) {
      volatile.delete(taskId);
      replaced.delete(taskId);
    }
    alone = Math.max(0, alone - taskIds.length);
  };

  /** One result with a format that the server refuses must not block the others. */
  const setAside = (batch: TaskResultReport[], why: string) => {
    const [only] = batch;
    if (only !== undefined && batch.length === 1 && replaced.has(only.task_id)) {
      options.onDropped(only, why);
      forget([only.task_id]);
      return;
    }
    const taskIds = batch.map((one) => one.task_id);
    options.onRefused(taskIds, why);
    if (batch.length > 1 || only === undefined) alone = batch.length;
    else {
      replaced.set(only.task_id, { ...only, timings: {}, outcome: failed("result_invalid", why) });
    }
  };

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (stopped) wake();
    });

  const poke = () => {
    if (stopped) return;
    delivering ??= deliver().finally(() => {
      delivering = undefined;
    });
  };

  return {
    poke,
    volatile: {
      add(report) {
        volatile.set(report.task_id, report);
        poke();
      },
      held: () => [...volatile.values()].map(({ task_id, generation }) => ({ task_id, generation })),
    },
    reconnected() {
      failures = 0;
      wake?.();
      poke();
    },
    async flush(withinMs) {
      poke();
      wake?.();
      let timer: NodeJS.Timeout | undefined;
      const deadline = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([delivering, deadline]);
      clearTimeout(timer);
    },
    stop() {
      stopped = true;
      wake?.();
    },
  };
}

/** In order, as many as fit into one request; the first always does. */
export function takeBatch(
  results: readonly TaskResultReport[],
  limit: { most: number; mostBytes: number },
): TaskResultReport[] {
  const batch: TaskResultReport[] = [];
  let bytes = 0;
  for (const report of results) {
    bytes += Buffer.byteLength(JSON.stringify(report)) + 1;
    if (batch.length >= limit.most || (batch.length > 0 && bytes > limit.mostBytes)) break;
    batch.push(report);
  }
  return batch;
}

/** The server itself refused the request permanently. */
function isRefusedByForm(failure: Failure): boolean {
  return (
    failure.kind === "answer" && failure.code !== undefined && [400, 409, 413, 415, 422].includes(failure.status)
  );
}
