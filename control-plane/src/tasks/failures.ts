// Failures in words. A code that is known gets its next step from the catalogue and not from the
// node: what people are told to do is not a node's to decide.

import type { TaskFailure } from "@holdfast/contracts/node-protocol";
import { type CommonFailure, commonTaskFailures, type FailureEntry } from "@holdfast/contracts/task-failures";
import { redact } from "@holdfast/kit/redact";
import type { AnyTaskType } from "@holdfast/tasks/type";

export function commonFailure(code: CommonFailure): TaskFailure {
  const { message, nextStep } = commonTaskFailures[code];
  return { code, message, next_step: nextStep };
}

/** As the agent told it; its message may be more exact than the catalogue's. */
export function reportedFailure(type: AnyTaskType | undefined, told: TaskFailure): TaskFailure {
  const entry = entryOf(type, told.code);
  const message = told.message.trim() || entry?.message || "The agent gave no reason.";
  const nextStep = entry?.nextStep ?? told.next_step;
  return { code: told.code, message: redact(message), next_step: redact(nextStep) };
}

function entryOf(type: AnyTaskType | undefined, code: string): FailureEntry | undefined {
  const own: Record<string, FailureEntry> = type?.failures ?? {};
  if (Object.hasOwn(own, code)) return own[code];
  const common: Record<string, FailureEntry> = commonTaskFailures;
  return Object.hasOwn(common, code) ? common[code] : undefined;
}
