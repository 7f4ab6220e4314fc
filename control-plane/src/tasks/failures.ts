// The wording of failures. A known code gets its next step from the catalogue and never from the node: a node does not
// decide what people are advised to do.

import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { type CommonFailure, commonTaskFailures, type FailureEntry } from "@holdfast/contracts/node/task-failures";
import { redact } from "@holdfast/kit/redact";
import type { AnyTaskType } from "@holdfast/tasks/type";

export function commonFailure(code: CommonFailure): TaskFailure {
  const { message, nextStep } = commonTaskFailures[code];
  return { code, message, next_step: nextStep };
}

/** As the agent reported it; its message may be more exact than the one of the catalogue. */
export function reportedFailure(type: AnyTaskType | undefined, reported: TaskFailure): TaskFailure {
  const entry = entryOf(type, reported.code);
  const message = reported.message.trim() || entry?.message || "The agent gave no reason.";
  const nextStep = entry?.nextStep ?? reported.next_step;
  return { code: reported.code, message: redact(message), next_step: redact(nextStep) };
}

function entryOf(type: AnyTaskType | undefined, code: string): FailureEntry | undefined {
  const own: Record<string, FailureEntry> = type?.failures ?? {};
  if (Object.hasOwn(own, code)) return own[code];
  const common: Record<string, FailureEntry> = commonTaskFailures;
  return Object.hasOwn(common, code) ? common[code] : undefined;
}
