// What the api's answers mean for a terminal: whether to ask again, and which failure the client is sent.

import { ApiError } from "@holdfast/contracts/errors";
import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";

/** Asking again may help: no answer came, or none that decides anything. */
export function isTransient(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500 || error.code === "rate_limit_exceeded";
}

/** `unanswered` is the code where the api gave no answer that decides. `correlationId`: under which the api recorded it. */
export function failureOf(
  error: unknown,
  unanswered: TerminalFailureCode,
): { code: TerminalFailureCode; detail: string | null; correlationId?: string } {
  if (!(error instanceof ApiError) || isTransient(error)) return { code: unanswered, detail: null };
  const { reason, correlation_id } = error.details;
  const recorded = typeof correlation_id === "string" ? { correlationId: correlation_id } : {};
  const code = typeof reason === "string" ? reason : error.code;
  if (!isTerminalFailure(code)) return { code: unanswered, detail: error.message, ...recorded };
  return { code, detail: code === error.code ? error.message : null, ...recorded };
}

/** As the api's own events have it. */
export const failedNow = (code: TerminalFailureCode, detail: string | null, correlation_id: string) =>
  ({ type: "failed", at: new Date().toISOString(), code, detail, correlation_id }) as const;
