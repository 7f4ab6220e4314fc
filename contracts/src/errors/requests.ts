// What can be wrong with a request, whatever it is about.

import type { ErrorEntry } from "./entry.ts";

export const requestErrors = {
  malformed_json: {
    status: 400,
    message: "The body is not valid JSON.",
    retryable: false,
    nextStep: "Send valid JSON with the header `content-type: application/json`.",
  },
  unknown_field: {
    status: 400,
    message: "The request has a field that this endpoint does not accept.",
    retryable: false,
    nextStep: "Remove the fields named in details, or check their spelling in the API reference.",
  },
  invalid_request: {
    status: 400,
    message: "The request is not valid.",
    retryable: false,
    nextStep: "Correct the fields named in details. The API reference lists what each field accepts.",
  },
  invalid_cursor: {
    status: 400,
    message: "The cursor does not belong to this listing.",
    retryable: false,
    nextStep: "Use `next_cursor` of the previous page unchanged, with the same filters, or start without one.",
  },
  body_too_large: {
    status: 413,
    message: "The body is larger than this endpoint accepts.",
    retryable: false,
    nextStep: "Send a smaller body. Details name the limit in bytes.",
  },
  unsupported_media_type: {
    status: 415,
    message: "This endpoint does not accept the body's content type.",
    retryable: false,
    nextStep: "Send JSON with the header `content-type: application/json`.",
  },
  not_found: {
    status: 404,
    message: "Not found, or you have no access.",
    retryable: false,
    nextStep: "Check the id, and that you act in the right organization.",
  },
  route_not_found: {
    status: 404,
    message: "This endpoint does not exist.",
    retryable: false,
    nextStep: "Check method and path in the API reference at /reference.",
  },
  method_not_allowed: {
    status: 405,
    message: "This path does not accept this method.",
    retryable: false,
    nextStep: "Use one of the methods named in the `allow` header.",
  },
  conflict: {
    status: 409,
    message: "The request conflicts with the current state.",
    retryable: false,
    nextStep: "Read the current state and decide again.",
  },
  name_taken: {
    status: 409,
    message: "The name is already in use.",
    retryable: false,
    nextStep: "Choose another name.",
  },
  idempotency_key_reused: {
    status: 409,
    message: "This idempotency key was used before for a different request.",
    retryable: false,
    nextStep: "Use a new key for a new request. Repeat a key only with the identical request.",
  },
  host_refused: {
    status: 421,
    message: "This server does not serve the host name of the request.",
    retryable: false,
    nextStep:
      "Use localhost, or set HOLDFAST_PUBLIC_URL to the address that people use. This protects against DNS rebinding.",
  },
  rate_limit_exceeded: {
    status: 429,
    message: "Too many attempts.",
    retryable: true,
    nextStep: "Wait for the number of seconds in the `retry-after` header, then try again.",
  },
  internal_error: {
    status: 500,
    message: "The server failed to process the request.",
    retryable: true,
    nextStep: "Try again. If it fails again, give the correlation id to the operator, who finds it in the log.",
  },
  database_unavailable: {
    status: 503,
    message: "The server cannot reach its database.",
    retryable: true,
    nextStep: "Try again in a few seconds. The request changed nothing. `holdfast status` shows the cause.",
  },
  shutting_down: {
    status: 503,
    message: "This server is shutting down.",
    retryable: true,
    nextStep: "Try again in a few seconds.",
  },
} as const satisfies Record<string, ErrorEntry>;
