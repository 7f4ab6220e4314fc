// How an action of a connector can fail, in the worker and on agents alike. No schema library here: agents have none (ADR 35).
// `retryable`: the same request may succeed later. Whether it may be sent again also depends on whether it may have had its effect.

export type ConnectorFailureEntry = { title: string; message: string; nextStep: string; retryable: boolean };

export const connectorFailures = {
  connector_unknown: {
    title: "Unknown connector",
    message: "There is no connector of this name here.",
    nextStep: "List the connectors with `holdfast connector list`.",
    retryable: false,
  },
  action_unknown: {
    title: "Unknown action",
    message: "The connector has no action of this name.",
    nextStep: "List its actions with `holdfast connector show <connector>`.",
    retryable: false,
  },
  input_invalid: {
    title: "Invalid input",
    message: "The input is not what the action accepts.",
    nextStep: "Correct the input of the step. `holdfast connector show <connector>` lists the fields.",
    retryable: false,
  },
  secret_missing: {
    title: "Secret missing",
    message: "The action needs a secret, and the step names none.",
    nextStep: "Store it with `holdfast secret set <name>`, and set `secret: <name>` in the step.",
    retryable: false,
  },
  secret_unavailable: {
    title: "Secret unavailable",
    message: "The secret of the step was not handed out.",
    nextStep: "Check its name, and that whoever started the run may use it: `holdfast secret list`.",
    retryable: false,
  },
  secret_late: {
    title: "Secret not handed out in time",
    message: "No api handed out the secret of the step in time.",
    nextStep: "Check that an api runs: `holdfast status`. Then start the run again.",
    retryable: true,
  },
  secret_refused: {
    title: "Secret refused",
    message: "The service does not accept the secret, or it does not permit the action.",
    nextStep: "Check the permissions of the token, and replace it with `holdfast secret set <name>`.",
    retryable: false,
  },
  address_refused: {
    title: "Address refused",
    message: "The address must not be reached from here.",
    nextStep:
      "Use a public https:// address, run the step on an agent in that network (`execution.mode: node`), or ask the operator to allow the address.",
    retryable: false,
  },
  unreachable: {
    title: "Unreachable",
    message: "The service could not be reached.",
    nextStep: "Check the host name and port, and that the service runs.",
    retryable: true,
  },
  connection_lost: {
    title: "Connection lost",
    message: "The connection ended before there was an answer. The action may have had its effect.",
    nextStep: "Look at the service before you run the step again.",
    retryable: true,
  },
  timed_out: {
    title: "Timed out",
    message: "There was no answer in time. The action may have had its effect.",
    nextStep: "Look at the service before you run the step again, or raise the timeout of the step.",
    retryable: true,
  },
  cancelled: {
    title: "Cancelled",
    message: "The step was cancelled.",
    nextStep: "Start the run again if it is still needed.",
    retryable: false,
  },
  rate_limited: {
    title: "Rate limited",
    message: "The service refuses further requests for now.",
    nextStep: "Add a `retry` to the step: it waits as long as the service asks for.",
    retryable: true,
  },
  service_failed: {
    title: "Service failed",
    message: "The service reports an error of its own.",
    nextStep: "Check the status of the service.",
    retryable: true,
  },
  redirected: {
    title: "Redirected",
    message:
      "The service redirects to another address, which is not followed: it would send the secret elsewhere.",
    nextStep: "Use the address that the service redirects to.",
    retryable: false,
  },
  target_not_found: {
    title: "Not found",
    message: "The service does not have what the action refers to, or the secret does not permit to see it.",
    nextStep: "Check the names and ids in the input of the step.",
    retryable: false,
  },
  request_refused: {
    title: "Refused",
    message: "The service refuses the request.",
    nextStep: "Read the message of the service, and correct the input of the step.",
    retryable: false,
  },
  response_too_large: {
    title: "Response too large",
    message: "The response is larger than a step may keep. The action had its effect.",
    nextStep: "Ask the service for less, such as one page.",
    retryable: false,
  },
  response_invalid: {
    title: "Invalid response",
    message: "The response is not what the service documents. The action may have had its effect.",
    nextStep: "Check that the address is that of the service, and of an API version that is supported.",
    retryable: false,
  },
} as const satisfies Record<string, ConnectorFailureEntry>;

export type ConnectorFailureCode = keyof typeof connectorFailures;
