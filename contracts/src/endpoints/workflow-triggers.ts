// What starts runs of a workflow by itself: schedules and webhooks (ADR 64). They belong to the published version; what is set here stays
// when a later version has the same trigger again.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id } from "../fields.ts";
import { WorkflowTrigger } from "./workflows.ts";

/** Of a request to a webhook. */
export const MOST_HOOK_BYTES = 256 * 1024;
/** By which the clocks of sender and server may differ. */
export const HOOK_TOLERANCE_SECONDS = 300;

export const hookHeaders = {
  /** The same when a request is sent again. */
  delivery: "x-holdfast-delivery",
  /** Seconds since 1970. */
  timestamp: "x-holdfast-timestamp",
  /** `v1=` and the hexadecimal HMAC-SHA256 of `<timestamp>.<delivery>.<body>`. */
  signature: "x-holdfast-signature",
} as const;

const one = z.strictObject({ trigger_id: Id });

export const setWorkflowTrigger = endpoint({
  name: "setWorkflowTrigger",
  noun: "workflow-triggers",
  method: "PATCH",
  path: "/v1/workflow-triggers/{trigger_id}",
  summary: "Enable or disable a schedule or a webhook",
  description: "Times that pass while a schedule is disabled are not made up for.",
  access: { scope: "workflows:write" },
  action: "workflow_trigger.set",
  params: one,
  body: z.strictObject({ enabled: z.boolean() }),
  answer: WorkflowTrigger,
});

export const rotateWorkflowTrigger = endpoint({
  name: "rotateWorkflowTrigger",
  noun: "workflow-triggers",
  method: "POST",
  path: "/v1/workflow-triggers/{trigger_id}/rotate",
  summary: "Create the token of a webhook; an earlier one is no longer accepted",
  description:
    "The token is shown once. Senders pass it as `Authorization: Bearer <token>`, or use the URL with the token as its password, which " +
    "clients send as the same header. A webhook that names a secret has no token: its requests are signed.",
  access: { scope: "workflows:write" },
  action: "workflow_trigger.rotate",
  params: one,
  answer: z.strictObject({
    trigger: WorkflowTrigger,
    token: z.string(),
    url: z.string().describe("With the token as password."),
  }),
  errors: ["trigger_has_no_token"],
});

export const receiveHook = endpoint({
  name: "receiveHook",
  noun: "workflow-triggers",
  method: "POST",
  path: "/v1/hooks/{hook_id}",
  summary: "Start a run by a webhook",
  description:
    "Runs see the request as `input.body` (JSON if it is, text otherwise) and `input.headers`. Authenticate with the token (Bearer, or as " +
    `password of any name), or sign: \`${hookHeaders.signature}: v1=<hex>\` is the HMAC-SHA256 of \`<timestamp>.<delivery>.<body>\` with the ` +
    `secret, where the timestamp (\`${hookHeaders.timestamp}\`, seconds since 1970) is at most ${HOOK_TOLERANCE_SECONDS} seconds off and ` +
    `the delivery (\`${hookHeaders.delivery}\`) is an id of the sender's choice. A delivery starts one run: sent again, it returns that run. ` +
    `At most ${MOST_HOOK_BYTES} bytes.`,
  access: "public",
  action: "run.trigger",
  params: z.strictObject({ hook_id: AnyText.max(64) }),
  unknownId: "hook_refused",
  body: z.unknown(),
  rawBody: true,
  answer: z.strictObject({
    run_id: Id,
    replayed: z.boolean().describe("True: this delivery started the run before."),
  }),
  errors: [...(["hook_signature_expired", "trigger_disabled", "trigger_backlog"] as const), "rate_limit_exceeded"],
});
