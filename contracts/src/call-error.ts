// What a refused call throws. Apart from the client, so that whoever only reports it needs no schema library.

import type { ErrorCode, ErrorEnvelope } from "./errors.ts";

/** An error answer, as the server gave it, or as much of it as could be understood. */
export class CallError extends Error {
  override name = "CallError";
  readonly status: number;
  readonly envelope: ErrorEnvelope;

  constructor(status: number, envelope: ErrorEnvelope) {
    super(envelope.message);
    this.status = status;
    this.envelope = envelope;
  }
}

/** Undefined: no response of the server. */
export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof CallError ? error.envelope.code : undefined;
}

/** The server refused, and may not refuse the same request later. */
export function isRetryable(error: unknown): boolean {
  return error instanceof CallError && error.envelope.retryable;
}

export type FieldProblem = { field: string; problem: string };

/** The fields that the server did not accept, as `body.name`. */
export function fieldProblemsOf({ details }: Pick<ErrorEnvelope, "details">): FieldProblem[] {
  const fields = details["fields"];
  if (!Array.isArray(fields)) return [];
  return fields.flatMap((each: unknown) => {
    if (typeof each !== "object" || each === null || !("field" in each) || !("problem" in each)) return [];
    return [{ field: String(each.field), problem: String(each.problem) }];
  });
}
