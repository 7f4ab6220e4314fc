// The error catalogue: every code that can cross a wire, with its status, meaning and next step. The entries are in
// `errors/`, by topic; docs/reference/errors.md is generated from them. Clients decide by `code` and `retryable`, never
// by the message.

import { z } from "zod";
import { executionErrors } from "./errors/execution.ts";
import { jenkinsErrors } from "./errors/jenkins.ts";
import { nodeErrors } from "./errors/nodes.ts";
import { notifyErrors } from "./errors/notify.ts";
import { peopleErrors } from "./errors/people.ts";
import { requestErrors } from "./errors/requests.ts";
import { secretErrors } from "./errors/secrets.ts";
import { vmErrors } from "./errors/vms.ts";
import { workErrors } from "./errors/work.ts";
import { workflowErrors } from "./errors/workflows.ts";
import { runbookOf } from "./reasons/catalogue.ts";

export const errorCatalogue = {
  ...requestErrors,
  ...peopleErrors,
  ...nodeErrors,
  ...workErrors,
  ...executionErrors,
  ...notifyErrors,
  ...secretErrors,
  ...vmErrors,
  ...jenkinsErrors,
  ...workflowErrors,
};

export type ErrorCode = keyof typeof errorCatalogue;
export const errorCodes = Object.keys(errorCatalogue) as [ErrorCode, ...ErrorCode[]];

export const ErrorEnvelope = z.strictObject({
  code: z.enum(errorCodes),
  message: z.string(),
  correlation_id: z.string(),
  retryable: z.boolean(),
  next_step: z.string(),
  runbook: z.string().optional().describe("The path of the error's runbook on this server, where it has one."),
  details: z.record(z.string(), z.unknown()),
});
export type ErrorEnvelope = z.infer<typeof ErrorEnvelope>;

/** An error that a client is meant to see. Anything else thrown becomes `internal_error`. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly code: ErrorCode;
  readonly details: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly nextStep: string;

  constructor(
    code: ErrorCode,
    options: {
      message?: string;
      nextStep?: string;
      details?: Record<string, unknown>;
      headers?: Record<string, string>;
    } = {},
  ) {
    super(options.message ?? errorCatalogue[code].message);
    this.code = code;
    this.nextStep = options.nextStep ?? errorCatalogue[code].nextStep;
    this.details = options.details ?? {};
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }

  envelope(correlationId: string): ErrorEnvelope {
    const entry = errorCatalogue[this.code];
    const runbook = runbookOf(this.code);
    return {
      code: this.code,
      message: this.message,
      correlation_id: correlationId,
      retryable: entry.retryable,
      next_step: this.nextStep,
      ...(runbook === null ? {} : { runbook }),
      details: this.details,
    };
  }
}
