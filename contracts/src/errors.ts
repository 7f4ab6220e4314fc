// The error catalogue: every code that can cross a wire, with its status, meaning and next step.
// docs/reference/errors.md is generated from it. Clients decide by `code` and `retryable`, never
// by the message.

import { z } from "zod";

type ErrorEntry = {
  status: number;
  /** What happened, to a person. A call may replace it with something more exact. */
  message: string;
  /** The same request may succeed later, unchanged. */
  retryable: boolean;
  /** What to do now. */
  nextStep: string;
};

export const errorCatalogue = {
  malformed_json: {
    status: 400,
    message: "The body is not valid JSON.",
    retryable: false,
    nextStep: "Send valid JSON with the header `content-type: application/json`.",
  },
  unknown_field: {
    status: 400,
    message: "The request has a field that this endpoint does not know.",
    retryable: false,
    nextStep: "Remove the fields named in details, or check their spelling in the API reference.",
  },
  invalid_request: {
    status: 400,
    message: "The request does not have the expected form.",
    retryable: false,
    nextStep: "Correct the fields named in details; the API reference lists what each accepts.",
  },
  invalid_cursor: {
    status: 400,
    message: "The cursor does not belong to this listing.",
    retryable: false,
    nextStep: "Use `next_cursor` of the previous page unchanged, with the same filters, or start without one.",
  },
  organization_required: {
    status: 400,
    message: "You belong to several organizations and the request names none.",
    retryable: false,
    nextStep: "Send the organization's id in the header `x-org-id`; GET /v1/me lists yours.",
  },
  unauthenticated: {
    status: 401,
    message: "The request carries no valid session or token.",
    retryable: false,
    nextStep: "Sign in, or send a valid API token as `authorization: Bearer …`. A token may have been revoked.",
  },
  sign_in_failed: {
    status: 401,
    message: "Email or password is wrong.",
    retryable: false,
    nextStep:
      "Check both and try again. The operator can make you a link to set a new one: `holdfast admin link --email …`.",
  },
  forbidden: {
    status: 403,
    message: "Your role or the token's scopes do not allow this.",
    retryable: false,
    nextStep: "Ask an owner of the organization for the permission named in details.",
  },
  origin_refused: {
    status: 403,
    message: "The request comes from another site.",
    retryable: false,
    nextStep: "Use the page that this server itself serves, or an API token instead of the session cookie.",
  },
  not_found: {
    status: 404,
    message: "There is no such thing, or it is not yours to see.",
    retryable: false,
    nextStep: "Check the id, and that you act in the right organization.",
  },
  route_not_found: {
    status: 404,
    message: "There is no such endpoint.",
    retryable: false,
    nextStep: "Check method and path in the API reference at /reference.",
  },
  method_not_allowed: {
    status: 405,
    message: "This path does not take this method.",
    retryable: false,
    nextStep: "Use one of the methods named in the `allow` header.",
  },
  conflict: {
    status: 409,
    message: "The request contradicts what is stored.",
    retryable: false,
    nextStep: "Read the present state and decide again.",
  },
  name_taken: {
    status: 409,
    message: "The name is already used.",
    retryable: false,
    nextStep: "Choose another name.",
  },
  last_owner: {
    status: 409,
    message: "This is the organization's last owner.",
    retryable: false,
    nextStep: "Make somebody else an owner first.",
  },
  idempotency_key_reused: {
    status: 409,
    message: "This idempotency key was used before for a different request.",
    retryable: false,
    nextStep: "Use a new key for a new request; repeat an old key only with the identical request.",
  },
  link_unknown: {
    status: 410,
    message: "This link is not one of ours, or it was replaced by a newer one.",
    retryable: false,
    nextStep: "Copy the whole link, or ask for a new one (`holdfast admin link` for administrators).",
  },
  link_used: {
    status: 410,
    message: "This link was used already; each works once.",
    retryable: false,
    nextStep: "Sign in with your password, or ask for a new link (`holdfast admin link` for administrators).",
  },
  link_expired: {
    status: 410,
    message: "This link has expired.",
    retryable: false,
    nextStep: "Ask for a new link (`holdfast admin link` for administrators).",
  },
  body_too_large: {
    status: 413,
    message: "The body is larger than this endpoint accepts.",
    retryable: false,
    nextStep: "Send less; details name the limit in bytes.",
  },
  unsupported_media_type: {
    status: 415,
    message: "The body is of a type that this endpoint does not read.",
    retryable: false,
    nextStep: "Send JSON with the header `content-type: application/json`.",
  },
  host_refused: {
    status: 421,
    message: "This server does not answer to the host name of the request.",
    retryable: false,
    nextStep:
      "Use localhost, or set HOLDFAST_PUBLIC_URL to the address people use. This protects against DNS rebinding.",
  },
  rate_limit_exceeded: {
    status: 429,
    message: "Too many attempts.",
    retryable: true,
    nextStep: "Wait for the seconds named in the `retry-after` header, then try again.",
  },
  internal_error: {
    status: 500,
    message: "Something failed on our side.",
    retryable: true,
    nextStep: "Try again; if it stays, give the correlation id to the operator, who finds it in the log.",
  },
  database_unavailable: {
    status: 503,
    message: "The database cannot be reached at the moment.",
    retryable: true,
    nextStep: "Try again in a few seconds; nothing of the request was stored. `holdfast status` shows the cause.",
  },
  shutting_down: {
    status: 503,
    message: "This server is about to stop.",
    retryable: true,
    nextStep: "Try again in a few seconds.",
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalogue;
export const errorCodes = Object.keys(errorCatalogue) as [ErrorCode, ...ErrorCode[]];

export const ErrorEnvelope = z.strictObject({
  code: z.enum(errorCodes),
  message: z.string(),
  correlation_id: z.string(),
  retryable: z.boolean(),
  next_step: z.string(),
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
    return {
      code: this.code,
      message: this.message,
      correlation_id: correlationId,
      retryable: entry.retryable,
      next_step: this.nextStep,
      details: this.details,
    };
  }
}
