// How a request can end other than by what its agent reported, in the words that existing callers know; with what happened
// and what to do, for pages, the command line and the log. An agent's own error is any other text.

export const executionOutcomes = {
  NO_AGENT_AVAILABLE: {
    title: "No agent available",
    message: "No connected agent of the organization could take the request.",
    nextStep:
      "See why each agent was not chosen. Connect an agent with `holdfast agent connect`, or give the request time to wait.",
  },
  AGENT_DISCONNECTED: {
    title: "Agent disconnected",
    message:
      "The agent lost its connection and did not report a result before the deadline. The step may have run.",
    nextStep:
      "Check the agent on its host. Dispatch the step as a new attempt only if running it twice does no harm.",
  },
  NODE_EXECUTION_TIMEOUT: {
    title: "Timed out",
    message: "The step did not end before its deadline.",
    nextStep: "Raise timeoutMs, or make the step shorter.",
  },
  NODE_EXECUTION_FAILED: {
    title: "Step failed",
    message: "The step failed on its agent.",
    nextStep: "Read the output of the step.",
  },
  EXECUTION_CANCELLED: {
    title: "Cancelled",
    message: "The request was cancelled.",
    nextStep: "Dispatch it again as a new attempt if it is still needed.",
  },
  GATEWAY_UNAVAILABLE: {
    title: "Gateway unavailable",
    message: "The gateway could not be reached.",
    nextStep: "Check that the gateway runs, and that GATEWAY_HTTP_URL leads to its internal listener.",
  },
  GATEWAY_DISPATCH_FAILED: {
    title: "Dispatch failed",
    message: "The gateway refused the request.",
    nextStep: "Read the message of the gateway's answer.",
  },
  GATEWAY_RESPONSE_INVALID: {
    title: "Invalid response",
    message: "What answered at the gateway's address is not a gateway of this version.",
    nextStep: "Check that GATEWAY_HTTP_URL leads to the gateway's internal listener.",
  },
  GATEWAY_SHUTDOWN: {
    title: "Gateway stopping",
    message: "The gateway stopped before the result arrived. The request goes on.",
    nextStep: "Ask again with the same request: it is not run twice.",
  },
  GATEWAY_NOT_CONFIGURED: {
    title: "Gateway not configured",
    message: "The worker has no dispatch token.",
    nextStep: "Set GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN in the worker's environment.",
  },
} as const satisfies Record<string, { title: string; message: string; nextStep: string }>;

export type ExecutionOutcome = keyof typeof executionOutcomes;
