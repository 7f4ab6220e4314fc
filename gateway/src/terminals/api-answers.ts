// What the api's responses mean for a terminal: whether to retry, and which failure the client receives.

import { ApiError } from "@holdfast/contracts/errors";
import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";

/** A retry may help: there was no response, or none that decides anything. */
export function isTransient(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500 || error.code === "rate_limit_exceeded";
}

/** `unanswered`: the code without a decisive response. `correlationId`: under which the api recorded it. */
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

/** In the form of the api's own events. */
export const failedNow = (code: TerminalFailureCode, detail: string | null, correlation_id: string) =>
  ({ type: "failed", at: new Date().toISOString(), code, detail, correlation_id }) as const;
