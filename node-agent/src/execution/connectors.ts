// The connectors that are built into the agent: those of workflows/src/connectors/, with the network of this host.

import { connectorFailures } from "@holdfast/contracts/execution/connector-failures";
import { allowanceOf } from "@holdfast/kit/addresses";
import { builtIn } from "@holdfast/workflows/connectors/built-in.generated";
import { idempotencyKeyOf, MOST_OUTPUT_BYTES, runAction } from "@holdfast/workflows/connectors/run-action";
import { networkOf } from "@holdfast/workflows/connectors/send/network";
import { failed, fixedStep, type Step, type StepResult, type StopReason, stopOutcome } from "./step.ts";

export const connectorNames: readonly string[] = Object.keys(builtIn);
/** Without a choice of the owner of the host: those that connect to nothing. */
export const usualConnectors: readonly string[] = connectorNames.filter(
  (name) => !builtIn[name]?.contract.usesNetwork,
);

/** Beside public addresses: private ones, for which there are agents. Loopback and metadata services only if they are listed. */
const ofPrivateNetworks = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

export type ConnectorOptions = {
  /** Those that this agent lists in its `hello`. */
  enabled: readonly string[];
  /** Further networks that the owner of the host allows. */
  networks: readonly string[];
};

type ActionPayload = { connectorId: string; actionId: string; input?: unknown };

/** A few words more than the output. */
const ROOM = 4 * 1024;

export function connectorStep(
  { connectorId, actionId, input }: ActionPayload,
  { requestId, secret }: { requestId: string; secret?: string | undefined },
  { enabled, networks }: ConnectorOptions,
): Step {
  const known =
    enabled.includes(connectorId) && Object.hasOwn(builtIn, connectorId) ? builtIn[connectorId] : undefined;
  if (known === undefined) {
    return fixedStep(
      failed("NODE_EXECUTION_FAILED", `this agent has no connector ${JSON.stringify(connectorId)}`),
    );
  }
  if (!Object.hasOwn(known.contract.actions, actionId)) {
    return fixedStep(
      failed("NODE_EXECUTION_FAILED", `the connector ${connectorId} has no action ${JSON.stringify(actionId)}`),
    );
  }
  // Nothing leaves the agent, and its output has the size of its input.
  if (connectorId === "echo") return fixedStep({ status: "succeeded", output: input ?? null });
  const network = networkOf(allowanceOf([...ofPrivateNetworks, ...networks]));
  const request = { connector: connectorId, action: actionId, input, secret, network };
  return {
    pure: false,
    outputBytes: MOST_OUTPUT_BYTES + ROOM,
    async run({ signal }): Promise<StepResult> {
      const outcome = await runAction({ ...request, idempotencyKey: idempotencyKeyOf(requestId, input), signal });
      if ("output" in outcome) return { status: "succeeded", output: outcome.output };
      const { failure, retryAfterMs, outcomeKnown } = outcome;
      const { code, message } = failure;
      const output = { failure: { code, outcomeKnown, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) } };
      const { title } = connectorFailures[code];
      // The caller knows these two by their own names.
      if (code === "timed_out" || code === "cancelled")
        return failed(stopOutcome[signal.reason as StopReason], title);
      return { status: "failed", error: message, output };
    },
  };
}
