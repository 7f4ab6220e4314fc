// Runs the steps that are given to this agent. Each is in the journal before it starts, and its result before it is sent; what
// is known to the journal never runs again, whatever is repeated, lost or reordered between here and the control plane.

import type { CancelFrame, ResultAckFrame } from "@holdfast/contracts/execution/frames";
import { MOST_EXECUTION_OUTPUT_BYTES } from "@holdfast/contracts/execution/limits";
import type { Log } from "../log.ts";
import { admit } from "./admission.ts";
import type { Deliveries, ExecutionJournal } from "./deliveries.ts";
import type { SignedExecute } from "./frames.generated.ts";
import type { Link } from "./link.ts";
import { createLiveOutput, type LiveOutput } from "./live-output.ts";
import { createRedaction, type Redaction } from "./redaction/redactor.ts";
import { failed, fixedStep, type Step, type StepResult, type StopReason } from "./step.ts";
import type { Judgement } from "./verify.ts";

export type ExecutionsOptions = {
  journal: ExecutionJournal;
  deliveries: Deliveries;
  maxInFlight: number;
  prepare(frame: SignedExecute): Step;
  /** What must not leave this host with the output of the step. */
  secretsOf(frame: SignedExecute): readonly string[];
  /** Of a delivery: a link may no longer be needed. */
  onEnded(): void;
  log: Log;
};

export type Executions = {
  offered(frame: SignedExecute, judgement: Judgement, link: Link): void;
  cancelled(frame: CancelFrame): void;
  acknowledged(frame: ResultAckFrame): void;
  /** Sends what waits for a connection. */
  flush(): void;
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
  const { journal, deliveries, log } = options;
  const running = new Map<string, Running>();
  let draining = false;

  const decline = ({ requestId, generation, correlationId }: SignedExecute, reason: string, link: Link) => {
    log.warn("a step was declined", { request_id: requestId, generation, reason, correlation_id: correlationId });
    link.send({ type: "declined", requestId, generation, reason: reason.slice(0, 400) });
  };
  const unwritable = (error: unknown) => `the agent could not write to its journal: ${(error as Error).message}`;

  const finish = async (requestId: string, generation: number, result: StepResult) => {
    try {
      await journal.result({ task_id: requestId, generation, result });
    } catch (error) {
      // It is kept in memory, and sent all the same.
      log.error("a result could not be written to the journal", { request_id: requestId, error });
    }
    deliveries.sendResult(requestId);
    const { status } = result;
    log.info("step ended", {
      request_id: requestId,
      status,
      ...(status === "failed" ? { error: result.error } : {}),
    });
  };

  const run = async (frame: SignedExecute, step: Step, entry: Running, link: Link): Promise<void> => {
    const { requestId } = frame;
    try {
      await journal.started(requestId);
    } catch (error) {
      journal.dropped(requestId);
      return decline(frame, unwritable(error), link);
    }
    entry.accepted = true;
    // A step that ends at once is accepted by its result.
    const acceptance = setImmediate(confirm, requestId, entry);
    const result = await runStep(step, { ...frame, secrets: options.secretsOf(frame) }, entry, (progress) =>
      deliveries.send(requestId, { type: "progress", requestId, generation: entry.generation, ...progress }),
    );
    clearImmediate(acceptance);
    entry.live.end();
    await finish(requestId, entry.generation, result);
  };

  const confirm = (requestId: string, { generation }: Running) =>
    deliveries.send(requestId, { type: "accepted", requestId, generation });

  const start = (frame: SignedExecute, step: Step, link: Link) => {
    const { requestId, generation, kind, expiresAt, correlationId } = frame;
    try {
      journal.claimed({
        ...{ task_id: requestId, generation, type: kind, expires_at: expiresAt },
        ...{ idempotent: step.pure, resultBytes: step.outputBytes },
      });
    } catch (error) {
      return decline(frame, unwritable(error), link);
    }
    log.info("step started", { request_id: requestId, generation, kind, correlation_id: correlationId });
    const live = createLiveOutput((piece) =>
      deliveries.send(requestId, { type: "log", requestId, generation: entry.generation, ...piece }),
    );
    const stop = new AbortController();
    const entry: Running = { generation, accepted: false, stop, live, done: Promise.resolve() };
    running.set(requestId, entry);
    deliveries.cameBy(requestId, link);
    entry.done = run(frame, step, entry, link)
      .catch((error: unknown) => log.error("a step ended unexpectedly", { request_id: requestId, error }))
      .finally(() => {
        running.delete(requestId);
        if (journal.stateOf(requestId) !== "unsent") deliveries.ended(requestId);
        options.onEnded();
      });
  };

  /** Sent again: it belongs to the newer delivery from now on. */
  const adopt = ({ requestId, generation }: SignedExecute, link: Link): Running | undefined => {
    journal.regenerated(requestId, generation);
    deliveries.cameBy(requestId, link);
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
          return step && start(frame, step, link);
        case "decline":
          return decline(frame, admission.reason, link);
        case "confirm": {
          const entry = adopt(frame, link);
          if (entry?.accepted) confirm(requestId, entry);
          return;
        }
        case "resend_result":
          adopt(frame, link);
          return deliveries.sendResult(requestId);
        case "ignore":
          log.warn("a step was ignored", { request_id: requestId, generation, reason: admission.reason });
      }
    },
    cancelled({ requestId, generation, reason }) {
      const entry = running.get(requestId);
      if (!entry || generation < entry.generation) return;
      log.info("step cancelled", { request_id: requestId, reason });
      entry.stop.abort("cancelled" satisfies StopReason);
    },
    acknowledged({ requestId, generation, verdict }) {
      const report = deliveries.resultOf(requestId);
      // The verdict on an older delivery says nothing about the newest.
      if (!report || generation < report.generation) return;
      journal.settled([requestId]);
      deliveries.ended(requestId);
      if (verdict !== "accepted") log.warn("a result was not accepted", { request_id: requestId, verdict });
      options.onEnded();
    },
    flush() {
      deliveries.sendWaiting();
      for (const { live } of running.values()) live.flush();
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

/** Until it ends, or is stopped by its deadline or a cancellation. Never rejects. No secret of the step leaves it. */
async function runStep(
  step: Step,
  { timeoutMs, secrets }: { timeoutMs: number; secrets: readonly string[] },
  { stop, live }: Running,
  send: (progress: { message: string; percent?: number }) => void,
): Promise<StepResult> {
  if (stop.signal.aborted) return failed("EXECUTION_CANCELLED");
  const limitMs = Math.min(timeoutMs, step.timeoutMs ?? timeoutMs);
  const deadline = setTimeout(() => stop.abort("timeout" satisfies StopReason), limitMs);
  const redaction = createRedaction(secrets);
  try {
    const result = await step.run({
      signal: stop.signal,
      onOutput: live.add,
      redaction,
      progress: (message, percent) =>
        send({ message: redaction.text(message).slice(0, 400), ...(percent === undefined ? {} : { percent }) }),
    });
    return redacted(result, redaction);
  } catch (error) {
    return failed("NODE_EXECUTION_FAILED", redaction.text((error as Error).message));
  } finally {
    clearTimeout(deadline);
  }
}

function redacted(result: StepResult, { text, value }: Redaction): StepResult {
  const output = result.output === undefined ? {} : { output: value(result.output) };
  return result.status === "failed"
    ? { ...result, error: text(result.error), ...output }
    : { ...result, ...output };
}

/** A result that could not be delivered is not made. */
function limited(step: Step): Step {
  if (step.outputBytes <= MOST_EXECUTION_OUTPUT_BYTES) return step;
  const why = `its output has more than ${MOST_EXECUTION_OUTPUT_BYTES} bytes`;
  return fixedStep(failed("NODE_EXECUTION_FAILED", why));
}
