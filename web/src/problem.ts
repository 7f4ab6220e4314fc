// A thrown error as a message for a person: what happened, the next step, and the id
// by which an operator finds it in log and audit.

import { CallError, type FieldProblem, fieldProblemsOf } from "@holdfast/contracts/client";
import type { ErrorCode } from "@holdfast/contracts/errors";

export type Problem = {
  /** Absent when no answer arrived. */
  code?: ErrorCode;
  message: string;
  nextStep: string;
  correlationId?: string;
  /** The path of its page on the server. */
  runbook?: string;
  /** Until the server listens again. */
  waitSeconds?: number;
  /** The fields it did not accept. */
  fields: { field: string; problem: string; path: string }[];
};

export function problemOf(error: unknown): Problem {
  if (error instanceof CallError) {
    const { code, message, next_step, correlation_id, runbook, details } = error.envelope;
    const wait = details["retry_after_seconds"];
    return {
      code,
      message,
      nextStep: next_step,
      correlationId: correlation_id,
      ...(runbook === undefined ? {} : { runbook }),
      fields: fieldProblemsOf(error.envelope).map(fieldOf),
      ...(typeof wait === "number" ? { waitSeconds: Math.ceil(wait) } : {}),
    };
  }
  if (error instanceof TypeError) {
    return {
      message: "Holdfast is unreachable.",
      nextStep:
        "Check your network connection. On the server, run `holdfast status`. This page retries automatically.",
      fields: [],
    };
  }
  return {
    message: "This page failed unexpectedly.",
    nextStep: "Reload the page. If it happens again, contact the operator.",
    fields: [],
  };
}

/** `body.expires_in_days` → `expires in days`, as the form calls it; the path is for forms that find the field. */
function fieldOf({ field, problem }: FieldProblem): Problem["fields"][number] {
  const path = field.replace(/^(body|query|path)\./, "");
  return { field: path.replaceAll("_", " "), problem, path };
}
