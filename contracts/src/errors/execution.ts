// Agents that run steps, and executions. On their documented routes these codes are answered in capitals.

import { executionOutcomes } from "../execution/outcomes.ts";
import { type ErrorEntry, wordsOf } from "./entry.ts";

export const executionErrors = {
  pairing_token_invalid: {
    status: 401,
    message: "The pairing token is malformed, unknown or was used before.",
    retryable: false,
    nextStep:
      "Create a new pairing token on the page Agents, or with `holdfast agent pair`, and use it within 15 minutes.",
  },
  pairing_token_expired: {
    status: 400,
    message: "The pairing token has expired.",
    retryable: false,
    nextStep: "Create a new pairing token and use it within 15 minutes.",
  },
  agent_gateway_missing: {
    status: 503,
    message: "No gateway that serves agents is running, so a paired agent would not know where to connect.",
    retryable: true,
    nextStep:
      "Start a gateway, or set HOLDFAST_EXECUTION_WS_URL on the api. Then pair again: the token was not used.",
  },
  node_executions_off: {
    status: 403,
    message: "The policy of the platform does not allow nodes to run steps with their own identity.",
    retryable: false,
    nextStep:
      "An operator can allow it: `holdfast policy set node.executions on --reason <why>`. Or pair the machine with a pairing token.",
  },
  node_agent_revoked: {
    status: 403,
    message: "The agent of this node was revoked, so the node runs no steps with its own identity any more.",
    retryable: false,
    nextStep: "Pair the machine with a pairing token: `holdfast agent pair`.",
  },
  agent_not_found: {
    status: 404,
    message: "Agent not found, or you have no access.",
    retryable: false,
    nextStep: "Check the id in the list of agents, and that you act in the right organization.",
  },
  agent_token_refused: {
    status: 401,
    message: "The agent token is not accepted: it is malformed, unknown or was revoked.",
    retryable: false,
    nextStep:
      "Check that the token is `<organization id>.<secret>` and that the agent is not revoked; otherwise pair it again.",
  },
  execution_ended: {
    status: 409,
    message: "The execution has ended already.",
    retryable: false,
    nextStep: "Nothing is left to cancel. Its result is on its page.",
  },
  unauthorized: {
    status: 401,
    message: "The dispatch token is missing or wrong.",
    retryable: false,
    nextStep: "Send the gateway's dispatch token (GATEWAY_SERVICE_TOKEN) in the header `x-gateway-token`.",
  },
  bad_request: {
    status: 400,
    message: "The request is not valid.",
    retryable: false,
    nextStep: "Correct the fields named in details.",
  },
  result_not_ready: {
    status: 404,
    message: "There is no result of this request: it still runs, was never dispatched, or its result was erased.",
    retryable: true,
    nextStep: "Ask again until the deadline of the request.",
  },
  no_agent_available: {
    status: 503,
    ...wordsOf(executionOutcomes.NO_AGENT_AVAILABLE),
    retryable: true,
  },
  /** Never 503, which callers of these routes read as `no_agent_available`. */
  gateway_dispatch_failed: {
    status: 502,
    message: "The gateway cannot reach the API, which stores requests.",
    retryable: true,
    nextStep: "Send the same request again: it is not run twice.",
  },
  internal_listener_only: {
    status: 404,
    message: "Internal routes are not served here.",
    retryable: false,
    nextStep:
      "Use the gateway's internal listener; `holdfast status --json` shows its address as gateway.internal_url.",
  },
} as const satisfies Record<string, ErrorEntry>;
