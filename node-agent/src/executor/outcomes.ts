// How a task ended, as it is reported. Text for people comes from the catalogue of the type or the
// common one; all other text is redacted here, so that the journal contains no secrets either.

import { MOST_RESULT_BYTES } from "@holdfast/contracts/node/limits";
import type { Outcome, TaskFailure } from "@holdfast/contracts/node/protocol";
import { type CommonFailure, commonTaskFailures, type FailureEntry } from "@holdfast/contracts/node/task-failures";
import { redact } from "@holdfast/kit/redact";
import type { CheckedTaskType } from "@holdfast/tasks/checked-type";
import type { TaskFailed } from "@holdfast/tasks/executor";

const LONGEST_MESSAGE = 1_000;

export function refused(code: CommonFailure): Outcome {
  return { status: "refused", failure: commonFailure(code) };
}

export function failed(code: CommonFailure, detail?: string): Outcome {
  return { status: "failed", failure: commonFailure(code, detail) };
}

export const cancelled = (detail?: string): Outcome => ({
  status: "cancelled",
  failure: commonFailure("task_cancelled", detail),
});
export const interrupted = (detail?: string): Outcome => ({
  status: "interrupted",
  failure: commonFailure("task_interrupted", detail),
});

/** From what the type returned: only what its schema allows, up to the size limit. */
export function succeeded(type: CheckedTaskType, returned: unknown): Outcome {
  let text: string;
  try {
    text = JSON.stringify(returned) ?? "null";
  } catch (error) {
    return failed("result_invalid", describe(error));
  }
  const limit = Math.min(type.resultBytes, MOST_RESULT_BYTES);
  const bytes = Buffer.byteLength(text);
  if (bytes > limit) return failed("result_too_large", `${bytes} bytes; this type may have ${limit}`);
  const result: unknown = JSON.parse(redact(text));
  const checked = type.result.safeParse(result);
  if (!checked.success) return failed("result_invalid", describe(checked.error));
  return { status: "succeeded", result };
}

/** From a failure that the type threw. */
export function thrown(type: CheckedTaskType, error: TaskFailed): Outcome {
  const entry = failureEntry(type, error.code);
  if (!entry) return failed("executor_failed", `${error.code}: ${error.message}`);
  const message = error.message === "" ? entry.message : error.message;
  return { status: "failed", failure: { code: error.code, ...wording({ ...entry, message }) } };
}

function failureEntry(type: CheckedTaskType, code: string): FailureEntry | undefined {
  const own = (type.failures as Record<string, FailureEntry>)[code];
  return own ?? (commonTaskFailures as Record<string, FailureEntry>)[code];
}

function commonFailure(code: CommonFailure, detail?: string): TaskFailure {
  const entry: FailureEntry = commonTaskFailures[code];
  const message = detail ? `${entry.message} (${detail})` : entry.message;
  return { code, ...wording({ ...entry, message }) };
}

function wording({ message, nextStep }: FailureEntry): { message: string; next_step: string } {
  // Truncated twice: a thrown message may have any length.
  const redacted = redact(message.slice(0, 4 * LONGEST_MESSAGE)).slice(0, LONGEST_MESSAGE);
  return { message: redacted.toWellFormed(), next_step: nextStep };
}

export function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
