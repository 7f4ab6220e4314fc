// Tasks, allocations and terminals.

import { endingReasons } from "../reasons/terminal/ending.ts";
import { openingReasons } from "../reasons/terminal/opening.ts";
import { type ErrorEntry, wordsOf } from "./entry.ts";

export const workErrors = {
  task_type_unknown: {
    status: 400,
    message: "This task type does not exist.",
    retryable: false,
    nextStep: "Choose one of the types named in details. GET /v1/task-types describes them.",
  },
  task_params_invalid: {
    status: 400,
    message: "The parameters are not valid for this task type.",
    retryable: false,
    nextStep: "Correct the fields named in details. GET /v1/task-types has the schema.",
  },
  task_not_replayable: {
    status: 409,
    message: "This task cannot be replayed.",
    retryable: false,
    nextStep: "Create a new task if it is needed: `holdfast task run <node> <type>`.",
  },
  capability_missing: {
    status: 409,
    message: "The node cannot run tasks of this type.",
    retryable: false,
    nextStep: "Choose a node that has the capability named in details.",
  },
  policy_reason_missing: {
    status: 422,
    message: "This change weakens the policy, so it needs a reason.",
    retryable: false,
    nextStep:
      "Repeat it with `reason`, or with `--reason` on the command line. The reason is recorded in the audit.",
  },
  key_rotation_too_soon: {
    status: 409,
    message: "The last rotation of this key has not finished.",
    retryable: false,
    nextStep: "Rotate again after the time named in details. `holdfast key list` shows the keys.",
  },
  result_too_large: {
    status: 413,
    message: "The result is too large.",
    retryable: false,
    nextStep: "The agent reports such a task as failed with this code. Details name the limit in bytes.",
  },
  terminal_token_mint_failed: {
    status: 409,
    retryable: false,
    ...wordsOf(openingReasons.terminal_token_mint_failed),
  },
  terminal_session_unknown: {
    status: 409,
    message: endingReasons.terminal_session_unknown.message,
    retryable: false,
    nextStep: "Request a token without `session_id` to open a new shell.",
  },
  terminal_token_refused: { status: 401, retryable: false, ...wordsOf(openingReasons.terminal_token_refused) },
  terminal_relay_unavailable: {
    status: 503,
    retryable: true,
    ...wordsOf(openingReasons.terminal_relay_unavailable),
  },
  terminal_moved: {
    status: 409,
    message: "Another gateway has this terminal now.",
    retryable: false,
    nextStep: "Nothing to do: the gateway that has it reports for it.",
  },
  terminal_gateway_missing: {
    status: 503,
    message: "No terminal gateway is connected to this server.",
    retryable: true,
    nextStep:
      "Try again in a few seconds. If it fails again, the operator starts the gateway: `holdfast gateway`.",
  },
  allocation_exists: {
    status: 409,
    message: "An allocation with this user on this node already exists.",
    retryable: false,
    nextStep: "Use it, release it first, or choose another user name.",
  },
  allocation_not_active: {
    status: 409,
    message: "The allocation is not active, so it has no user to repair.",
    retryable: false,
    nextStep: "Details name its status. Release a failed allocation and create a new one.",
  },
  own_account_only: {
    status: 409,
    message:
      "The agent on this node does not run as root and cannot create users. It offers its own account only.",
    retryable: false,
    nextStep: "Request the account named in details, or run the agent as root to get separate users.",
  },
  project_required: {
    status: 400,
    message: "The organization has no project for the allocation.",
    retryable: false,
    nextStep: "Create a project first, or name one in `project_id`.",
  },
} as const satisfies Record<string, ErrorEntry>;
