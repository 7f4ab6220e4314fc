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
} as const satisfies Record<string, ErrorEntry>;
