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
  quota_exceeded: {
    status: 409,
    message: "The limit of allocations is reached.",
    retryable: false,
    nextStep: "Release an allocation that is no longer needed, or ask an administrator to raise the limit.",
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
  enrollment_token_unknown: {
    status: 401,
    message: "This enrollment token is not one of ours.",
    retryable: false,
    nextStep: "Copy the whole token, or make a new one: `holdfast node token create`.",
  },
  enrollment_token_revoked: {
    status: 410,
    message: "This enrollment token was revoked.",
    retryable: false,
    nextStep: "Ask the operator why, or make a new one: `holdfast node token create`.",
  },
  enrollment_token_used: {
    status: 410,
    message: "This enrollment token was used already, by another key; each works once.",
    retryable: false,
    nextStep:
      "Make a new one: `holdfast node token create`. If you did not use it, look at the audit: somebody did.",
  },
  enrollment_token_expired: {
    status: 410,
    message: "This enrollment token has expired.",
    retryable: false,
    nextStep: "Make a new one: `holdfast node token create`; `--expires` makes it last longer.",
  },
  enrollment_token_wrong_node: {
    status: 403,
    message: "This enrollment token was made for another node than this machine is.",
    retryable: false,
    nextStep:
      "Use it on the node it was made for, or make one for this node: `holdfast node token create --node <id>`.",
  },
  csr_invalid: {
    status: 400,
    message: "The certificate request is not a signed PKCS#10 request for an acceptable key.",
    retryable: false,
    nextStep: "Send a PEM request for a P-256 key, signed with that key; the agent does so by itself.",
  },
  ca_unavailable: {
    status: 503,
    message: "This server has nodes, but not the CA that they trust: it issues nothing.",
    retryable: true,
    nextStep: "Give the api the database and the KEK it had before; a new CA would cut off every node.",
  },
  server_clock_skew: {
    status: 503,
    message: "The clocks of this api and of its database differ by more than a minute: it issues no certificates.",
    retryable: true,
    nextStep: "Sync the time on both hosts (`timedatectl`). Agents try again by themselves.",
  },
  certificate_missing: {
    status: 401,
    message: "The connection shows no client certificate.",
    retryable: false,
    nextStep: "Agents show theirs by themselves; enroll with `holdfast agent join`. People use the public API.",
  },
  certificate_untrusted: {
    status: 401,
    message: "The client certificate is not one that our CA has issued.",
    retryable: false,
    nextStep:
      "Enroll the machine with this server: make a token with `holdfast node token create`, then run `holdfast agent join --force` with it on the machine.",
  },
  certificate_unusable: {
    status: 401,
    message: "The client certificate is ours, but not one for a node.",
    retryable: false,
    nextStep: "Use the certificate that the node was enrolled with.",
  },
  certificate_not_yet_valid: {
    status: 401,
    message: "The client certificate is not valid yet.",
    retryable: false,
    nextStep: "Compare the clocks of node and server and sync them first; then try again.",
  },
  cert_expired: {
    status: 401,
    message: "The client certificate has expired.",
    retryable: false,
    nextStep:
      "Check the node's clock. Then make a token with `holdfast node token create --node <id>` and run `holdfast agent join` with it on the machine.",
  },
  identity_revoked: {
    status: 401,
    message: "The operator has revoked this node's identity.",
    retryable: false,
    nextStep:
      "Ask the operator why. To accept the node again: make a token with `holdfast node token create --node <id>`, run `holdfast agent join` with it on the machine, then `holdfast node reactivate <id>`.",
  },
  identity_retired: {
    status: 401,
    message: "The operator has retired this node, which cannot be undone.",
    retryable: false,
    nextStep:
      "Enroll the machine as a new node: make a token with `holdfast node token create`, then run `holdfast agent join --force` with it on the machine.",
  },
  certificate_header_refused: {
    status: 403,
    message: "The request carries a certificate in a header, which only an ingress of this installation may.",
    retryable: false,
    nextStep:
      "Connect with the certificate itself. A proxy in front needs an ingress certificate, and must set the header once: deploy/nginx shows how.",
  },
  ingress_identity_refused: {
    status: 503,
    message: "The ingress in front of this server shows a certificate that counts no more.",
    retryable: true,
    nextStep:
      "The operator looks at `holdfast ingress` beside the proxy: it renews the certificate while it runs and has the present HOLDFAST_INGRESS_TOKEN.",
  },
  node_mismatch: {
    status: 403,
    message: "The certificate belongs to another node than the path names.",
    retryable: false,
    nextStep: "An agent asks for its own node only; check the node id in its state directory.",
  },
  node_change_refused: {
    status: 409,
    message: "The node's present state does not allow this change.",
    retryable: false,
    nextStep: "Details name the state; the API reference says which change leads where.",
  },
  node_retired: {
    status: 409,
    message: "The node is retired, which cannot be undone.",
    retryable: false,
    nextStep:
      "Enroll the machine as a new node: make a token with `holdfast node token create`, then run `holdfast agent join --force` with it on the machine.",
  },
  node_not_active: {
    status: 409,
    message: "The node takes no new work in its present state.",
    retryable: false,
    nextStep: "Choose another node, or `holdfast node reactivate` this one; details name its state.",
  },
  task_type_unknown: {
    status: 400,
    message: "There is no such type of task.",
    retryable: false,
    nextStep: "Choose one of the types named in details; GET /v1/task-types describes them.",
  },
  task_params_invalid: {
    status: 400,
    message: "The parameters do not have the form that this type of task expects.",
    retryable: false,
    nextStep: "Correct the fields named in details; GET /v1/task-types has the schema.",
  },
  capability_missing: {
    status: 409,
    message: "The node cannot run this type of task.",
    retryable: false,
    nextStep: "Choose a node that has the capability named in details.",
  },
  key_rotation_too_soon: {
    status: 409,
    message: "The last rotation of this key is not over yet.",
    retryable: false,
    nextStep: "Rotate again after the time named in details; `holdfast key list` shows the keys there are.",
  },
  result_too_large: {
    status: 413,
    message: "The result is larger than a result may be.",
    retryable: false,
    nextStep: "The agent reports such a task as failed with this code; details name the limit in bytes.",
  },
  terminal_token_mint_failed: {
    status: 409,
    message: "There can be no terminal for this allocation now.",
    retryable: false,
    nextStep: "Details say why. An allocation has a terminal while it is active.",
  },
  terminal_session_unknown: {
    status: 409,
    message: "There is no such shell of yours any more.",
    retryable: false,
    nextStep: "Ask for a token without `session_id`: it opens a new shell.",
  },
  terminal_token_refused: {
    status: 401,
    message: "The terminal token was used before, its time is over, or there never was such a one.",
    retryable: false,
    nextStep: "Ask for a new one; it is good for one connection, within a minute.",
  },
  terminal_gateway_missing: {
    status: 503,
    message: "No terminal gateway is connected to this server.",
    retryable: true,
    nextStep: "Try again in a moment. If it stays, the operator starts the gateway: `holdfast gateway`.",
  },
  service_token_wrong: {
    status: 401,
    message: "The proof that comes with the request was not made with this server's service token, or is too old.",
    retryable: false,
    nextStep: "Give the api and the gateway the same HOLDFAST_SERVICE_TOKEN, and set both clocks right.",
  },
  service_identity_refused: {
    status: 401,
    message: "The connection shows no service certificate that counts here.",
    retryable: false,
    nextStep: "Only Holdfast's own processes use this listener. Restart the process: it gets a new certificate.",
  },
  allocation_exists: {
    status: 409,
    message: "There is an allocation with this user on this node already.",
    retryable: false,
    nextStep: "Use it, release it first, or choose another user name.",
  },
  allocation_not_active: {
    status: 409,
    message: "The allocation is not active, so there is no user to repair.",
    retryable: false,
    nextStep: "Details name its status. A failed allocation is released, and a new one created.",
  },
  own_account_only: {
    status: 409,
    message: "The agent on this node has no root and cannot make users; it offers its own account only.",
    retryable: false,
    nextStep: "Ask for the account named in details, or run the agent as root to get users of your own.",
  },
  project_required: {
    status: 400,
    message: "The organization has no project that the allocation could belong to.",
    retryable: false,
    nextStep: "Make a project first, or name one in `project_id`.",
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
