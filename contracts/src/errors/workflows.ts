// Workflows.

import type { ErrorEntry } from "./entry.ts";

export const workflowErrors = {
  workflow_invalid: {
    status: 422,
    message: "The draft of the workflow has problems.",
    retryable: false,
    nextStep:
      "Correct what details.problems lists, with lines and columns. `holdfast workflow validate <file>` checks a file.",
  },
  workflow_changed: {
    status: 409,
    message: "The draft was changed meanwhile.",
    retryable: false,
    nextStep: "Read the draft, take over what changed, and apply it again: `holdfast workflow show <name>`.",
  },
  workflow_not_published: {
    status: 409,
    message: "The workflow has no such published version.",
    retryable: false,
    nextStep: "Publish the draft first: `holdfast workflow publish <name>`.",
  },
  step_not_testable: {
    status: 422,
    message: "The step cannot be tested.",
    retryable: false,
    nextStep: "Name a step of the document that acts or decides, and pass outputs for the steps that it reads.",
  },
  run_input_too_large: {
    status: 422,
    message: "The input of the run is too large.",
    retryable: false,
    nextStep: "Pass a reference to the data, such as a URL, instead of the data.",
  },
  run_ended: {
    status: 409,
    message: "The run has ended.",
    retryable: false,
    nextStep: "Start another one: `holdfast workflow run <name>`.",
  },
  run_not_waiting: {
    status: 409,
    message: "The node does not wait for a person or an event.",
    retryable: false,
    nextStep: "See what the run waits for: `holdfast run show <id>`.",
  },
  run_not_failed: {
    status: 409,
    message: "The run cannot be retried: it has not failed.",
    retryable: false,
    nextStep: "See its state: `holdfast run show <id>`. Start another one: `holdfast workflow run <name>`.",
  },
  trigger_backlog: {
    status: 429,
    message: "This trigger has started 1,000 runs that have not ended.",
    retryable: true,
    nextStep: "Wait until some have ended, or cancel them: `holdfast run list --status queued`.",
  },
  trigger_disabled: {
    status: 409,
    message: "The webhook is disabled.",
    retryable: false,
    nextStep: "Enable it: `holdfast workflow trigger enable <workflow> <trigger id>`.",
  },
  trigger_has_no_token: {
    status: 409,
    message: "This trigger has no token.",
    retryable: false,
    nextStep:
      "Schedules need none. A webhook that names a secret is signed with it: `holdfast secret set <name>`.",
  },
  hook_refused: {
    status: 404,
    message: "Webhook not found, or the request is not authenticated for it.",
    retryable: false,
    nextStep:
      "Check the URL, and the token or the signature. `holdfast workflow trigger show <workflow>` describes what is expected; " +
      "`holdfast workflow trigger rotate <workflow> <trigger id>` creates a new token.",
  },
  hook_signature_expired: {
    status: 401,
    message: "The signature is correct, and its timestamp is more than 5 minutes off.",
    retryable: false,
    nextStep: "Set the sender's clock, and sign each attempt with the time at which it is sent.",
  },
} as const satisfies Record<string, ErrorEntry>;
