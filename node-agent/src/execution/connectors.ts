// The connectors that are built into the agent.

import { failed, fixedStep, type Step } from "./step.ts";

type Action = (input: unknown) => Step;

/** By connector and action. */
const builtIn: Readonly<Record<string, Readonly<Record<string, Action>>>> = {
  /** For trying out a connection: returns its input. */
  echo: { echo: (input) => fixedStep({ status: "succeeded", output: input ?? null }) },
};

export const connectorNames: readonly string[] = Object.keys(builtIn);

/** `enabled`: those that this agent lists in its `hello`. */
export function connectorStep(
  { connectorId, actionId, input }: { connectorId: string; actionId: string; input?: unknown },
  enabled: readonly string[],
): Step {
  const actions =
    enabled.includes(connectorId) && Object.hasOwn(builtIn, connectorId) ? builtIn[connectorId] : undefined;
  if (actions === undefined) {
    return fixedStep(
      failed("NODE_EXECUTION_FAILED", `this agent has no connector ${JSON.stringify(connectorId)}`),
    );
  }
  const action = Object.hasOwn(actions, actionId) ? actions[actionId] : undefined;
  return action
    ? action(input)
    : fixedStep(
        failed("NODE_EXECUTION_FAILED", `the connector ${connectorId} has no action ${JSON.stringify(actionId)}`),
      );
}
