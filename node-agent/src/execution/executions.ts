// Runs the steps that are given to this agent. Each is in the journal before it starts, and its result before it is sent; what
// is known to the journal never runs again, whatever is repeated, lost or reordered between here and the control plane.

import type { AgentFrame, CancelFrame, HeldExecution, ResultAckFrame } from "@holdfast/contracts/execution/frames";
import { MOST_EXECUTION_OUTPUT_BYTES, MOST_HELD_IN_FRAME } from "@holdfast/contracts/execution/limits";
import type { Journal } from "../journal/journal.ts";
import type { Log } from "../log.ts";
import { admit } from "./admission.ts";
import type { SignedExecute } from "./frames.generated.ts";
import type { Link } from "./link.ts";
import { createLiveOutput, type LiveOutput } from "./live-output.ts";
import { failed, fixedStep, type Step, type StepResult, type StopReason } from "./step.ts";
import type { Judgement } from "./verify.ts";

export type ExecutionReport = { task_id: string; generation: number; result: StepResult };
export type ExecutionJournal = Journal<ExecutionReport>;

export type ExecutionsOptions = {
  journal: ExecutionJournal;
  maxInFlight: number;
  prepare(frame: SignedExecute): Step;
  newest(): Link | undefined;
  /** A delivery has ended: a link may no longer be needed. */
  onEnded(): void;
  log: Log;
};

export type Executions = {
  offered(frame: SignedExecute, judgement: Judgement, link: Link): void;
  cancelled(frame: CancelFrame): void;
  acknowledged(frame: ResultAckFrame): void;
  /** Sends what waits for a connection. */
  linkReady(): void;
  linkEnded(link: Link): void;
  isBusy(link: Link): boolean;
  holding(): HeldExecution[];
  renew(): void;
  running(): number;
  /** Nothing new is started from now on. Resolves when nothing runs. */
  drain(): Promise<void>;
  /** Ends everything at once; the next start reports it. */
  kill(): void;
};

type Running = {
  generation: number;
  /** It may have started: the gateway was told. */
  accepted: boolean;
  stop: AbortController;
  live: LiveOutput;
  done: Promise<void>;
};

const RESTARTED =
  "the agent was restarted while the step ran; the step was ended and is not run again. It may have done part of its work";

export function createExecutions(options: ExecutionsOptions): Executions {
  const { journal, log } = options;
  const running = new Map<string, Running>();
  /** By which link each delivery came. It is answered by the same one, as long as that is open. */
  const origins = new Map<string, Link>();
  let draining = false;

  const linkOf = (requestId: string): Link | undefined => {
    const origin = origins.get(requestId);
    return origin?.isReady() ? origin : options.newest();
  };
  const send = (requestId: string, frame: AgentFrame): boolean => linkOf(requestId)?.send(frame) ?? false;
  const sendResult = ({ task_id: requestId, generation, result }: ExecutionReport) =>
    send(requestId, { type: "execute_result", requestId, generation, ...result });

  const decline = (frame: SignedExecute, reason: string, link: Link) => {
    const { requestId, generation, correlationId } = frame;
    log.warn("a step was declined", { request_id: requestId, generation, reason, correlation_id: correlationId });
    link.send({ type: "declined", requestId, generation, reason: reason.slice(0, 400) });
  };

  const finish = async (requestId: string, generation: number, result: StepResult) => {
    const report = { task_id: requestId, generation, result };
    try {
      await journal.result(report);
    } catch (error) {
      // It is kept in memory, and sent all the same.
      log.error("a result could not be written to the journal", { request_id: requestId, error });
    }
    const stored = journal.unsent().find(({ task_id }) => task_id === requestId);
    if (stored) sendResult(stored);
    const { status } = result;
    log.info("step ended", {
      request_id: requestId,
      status,
      ...(status === "failed" ? { error: result.error } : {}),
    });
  };

  const begin = async (frame: SignedExecute, step: Step, entry: Running, link: Link): Promise<void> => {
    const { requestId } = frame;
    try {
      await journal.started(requestId);
    } catch (error) {
      journal.dropped(requestId);
      return decline(frame, `the agent could not write to its journal: ${(error as Error).message}`, link);
    }
    entry.accepted = true;
    send(requestId, { type: "accepted", requestId, generation: entry.generation });
    const result = await runStep(step, frame, entry, (more) =>
      send(requestId, { ...more, requestId, generation: entry.generation }),
    );
    entry.live.end();
    await finish(requestId, entry.generation, result);
  };

  const start = (frame: SignedExecute, step: Step, link: Link) => {
    const { requestId, generation, kind, expiresAt, correlationId } = frame;
    try {
      journal.claimed({
        ...{ task_id: requestId, generation, type: kind, expires_at: expiresAt },
        ...{ idempotent: step.pure, resultBytes: step.outputBytes },
      });
    } catch (error) {
      return decline(frame, `the agent could not write to its journal: ${(error as Error).message}`, link);
    }
    log.info("step started", { request_id: requestId, generation, kind, correlation_id: correlationId });
    const live = createLiveOutput((piece) =>
      send(requestId, { type: "log", requestId, generation: entry.generation, ...piece }),
    );
    const entry: Running = {
      generation,
      accepted: false,
      stop: new AbortController(),
      live,
      done: Promise.resolve(),
    };
    running.set(requestId, entry);
    origins.set(requestId, link);
    entry.done = begin(frame, step, entry, link)
      .catch((error: unknown) => log.error("a step ended unexpectedly", { request_id: requestId, error }))
      .finally(() => {
        running.delete(requestId);
        if (journal.stateOf(requestId) !== "unsent") origins.delete(requestId);
        options.onEnded();
      });
  };

  /** Sent again: it belongs to the newer delivery from now on. */
  const adopt = ({ requestId, generation }: SignedExecute, link: Link) => {
    journal.regenerated(requestId, generation);
    origins.set(requestId, link);
    const entry = running.get(requestId);
    if (entry) entry.generation = Math.max(entry.generation, generation);
    return entry;
  };

  for (const { task_id, generation } of journal.interrupted()) {
    void finish(task_id, generation, failed("NODE_EXECUTION_FAILED", RESTARTED));
  }

  return {
    offered(frame, judgement, link) {
      const { requestId, generation } = frame;
      const step = judgement.refused === undefined ? limited(options.prepare(frame)) : undefined;
      const admission = admit({
        ...{ known: journal.stateOf(requestId), judgement, draining },
        ...{ running: running.size, maxInFlight: options.maxInFlight },
        hasRoom: step !== undefined && journal.roomFor(step.outputBytes) > 0,
      });
      switch (admission.do) {
        case "run":
          if (step) start(frame, step, link);
          return;
        case "decline":
          return decline(frame, admission.reason, link);
        case "confirm": {
          const entry = adopt(frame, link);
          if (entry?.accepted) send(requestId, { type: "accepted", requestId, generation: entry.generation });
          return;
        }
        case "resend_result": {
          adopt(frame, link);
          const stored = journal.unsent().find(({ task_id }) => task_id === requestId);
          if (stored) sendResult(stored);
          return;
        }
        case "ignore":
          log.warn("a step was ignored", { request_id: requestId, generation, reason: admission.reason });
      }
    },
    cancelled({ requestId, generation, reason }) {
      const entry = running.get(requestId);
      if (entry && generation >= entry.generation) {
        log.info("step cancelled", { request_id: requestId, reason });
        entry.stop.abort("cancelled" satisfies StopReason);
      }
    },
    acknowledged({ requestId, generation, verdict }) {
      const stored = journal.unsent().find(({ task_id }) => task_id === requestId);
      // The verdict on an older delivery says nothing about the newest.
      if (!stored || generation < stored.generation) return;
      journal.settled([requestId]);
      origins.delete(requestId);
      if (verdict !== "accepted") log.warn("a result came to nothing", { request_id: requestId, verdict });
      options.onEnded();
    },
    linkReady() {
      for (const report of journal.unsent()) if (!origins.get(report.task_id)?.isReady()) sendResult(report);
      for (const { live } of running.values()) live.flush();
    },
    linkEnded(link) {
      for (const [requestId, origin] of origins) if (origin === link) origins.delete(requestId);
      if (options.newest()) this.linkReady();
    },
    isBusy: (link) => origins.values().some((origin) => origin === link),
    holding: () =>
      journal
        .held()
        .slice(0, MOST_HELD_IN_FRAME)
        .map(({ task_id, generation }) => ({ requestId: task_id, generation })),
    renew() {
      const byLink = Map.groupBy(journal.held(), ({ task_id }) => linkOf(task_id));
      for (const [link, held] of byLink) {
        for (let at = 0; at < held.length; at += MOST_HELD_IN_FRAME) {
          const holding = held
            .slice(at, at + MOST_HELD_IN_FRAME)
            .map(({ task_id, generation }) => ({ requestId: task_id, generation }));
          link?.send({ type: "renew", holding });
        }
      }
    },
    running: () => running.size,
    async drain() {
      draining = true;
      await Promise.all([...running.values()].map(({ done }) => done));
    },
    kill() {
      for (const { stop } of running.values()) stop.abort("cancelled" satisfies StopReason);
    },
  };
}

/** Until it ends, or is stopped by its deadline or a cancellation. Never rejects. */
async function runStep(
  step: Step,
  { timeoutMs }: SignedExecute,
  { stop, live }: Running,
  send: (frame: { type: "progress"; message: string; percent?: number }) => void,
): Promise<StepResult> {
  if (stop.signal.aborted) return failed("EXECUTION_CANCELLED");
  const limitMs = Math.min(timeoutMs, step.timeoutMs ?? timeoutMs);
  const deadline = setTimeout(() => stop.abort("timeout" satisfies StopReason), limitMs);
  try {
    return await step.run({
      signal: stop.signal,
      onOutput: live.add,
      progress: (message, percent) =>
        send({ type: "progress", message: message.slice(0, 400), ...(percent === undefined ? {} : { percent }) }),
    });
  } catch (error) {
    return failed("NODE_EXECUTION_FAILED", (error as Error).message);
  } finally {
    clearTimeout(deadline);
  }
}

/** A result that could not be delivered must not be made. */
function limited(step: Step): Step {
  if (step.outputBytes <= MOST_EXECUTION_OUTPUT_BYTES) return step;
  const why = `its output has more than ${MOST_EXECUTION_OUTPUT_BYTES} bytes`;
  return fixedStep(failed("NODE_EXECUTION_FAILED", why));
}
