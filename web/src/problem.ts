// What to tell a person about something that was thrown: what happened, what to do now, and the id
// by which an operator finds it in log and audit.

import { CallError } from "@holdfast/contracts/client";
import type { ErrorCode } from "@holdfast/contracts/errors";
import { secondsToWait } from "./api.ts";

export type Problem = {
  /** Absent when no answer arrived. */
  code?: ErrorCode;
  message: string;
  nextStep: string;
  correlationId?: string;
  waitSeconds?: number;
};

export function problemOf(error: unknown): Problem {
  if (error instanceof CallError) {
    const { code, message, next_step, correlation_id } = error.envelope;
    return {
      code,
      message,
      nextStep: next_step,
      correlationId: correlation_id,
      ...(code === "rate_limit_exceeded" ? { waitSeconds: secondsToWait(correlation_id) } : {}),
    };
  }
  if (error instanceof TypeError) {
    return {
      message: "Holdfast cannot be reached.",
      nextStep: "Check your network and, on the server, `holdfast status`. This page keeps trying by itself.",
    };
  }
  return { message: "This page met a fault of its own.", nextStep: "Reload it. If it stays, tell the operator." };
}

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof CallError ? error.envelope.code : undefined;
}
