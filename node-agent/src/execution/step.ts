// A step as the agent runs it, whatever its kind, and how it ends.

import type { ExecutionOutcome } from "@holdfast/contracts/execution/outcomes";
import type { OutputStream } from "../drivers/sandbox/driver.ts";
import type { Redaction } from "./redaction/redactor.ts";

export type StepResult =
  | { status: "succeeded"; output?: unknown }
  | { status: "failed"; error: string; output?: unknown };

/** Why a step is ended before it ends by itself. */
export type StopReason = "timeout" | "cancelled";

export type StepContext = {
  /** Aborted with a StopReason. The step ends everything that it has started, and then returns. */
  signal: AbortSignal;
  /** Output must have passed `redaction`, before it is cut to any length. Results, errors and progress pass it later. */
  onOutput(stream: OutputStream, text: string): void;
  redaction: Redaction;
  progress(message: string, percent?: number): void;
};

export type Step = {
  /** It has no effect: running it again after a crash does no harm, and costs less than remembering it on a disk. */
  pure: boolean;
  /** Of its output at most, as JSON: the journal keeps so much room for it. */
  outputBytes: number;
  /** Its own limit, if it has one. */
  timeoutMs?: number | undefined;
  run(context: StepContext): Promise<StepResult>;
};

/** An outcome in the words that callers know, and why. */
export function failed(outcome: ExecutionOutcome, why?: string): StepResult {
  return { status: "failed", error: why === undefined ? outcome : `${outcome}: ${why}` };
}

export const stopOutcome = {
  timeout: "NODE_EXECUTION_TIMEOUT",
  cancelled: "EXECUTION_CANCELLED",
} as const satisfies Record<StopReason, ExecutionOutcome>;

/** A step that ends at once, without an effect. */
export function fixedStep(result: StepResult): Step {
  return { pure: true, outputBytes: jsonBytes(result), run: async () => result };
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "");
}
