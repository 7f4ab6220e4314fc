// From a dispatch that was verified to a step that can be run. What cannot be run becomes a step that fails with the reason.

import { type ConnectorOptions, connectorStep } from "./connectors.ts";
import type { SignedExecute } from "./frames.generated.ts";
import { AgentExecutePayload, ConnectorActionPayload } from "./payloads.generated.ts";
import { agentStep, type Sandbox } from "./shell-step.ts";
import { failed, fixedStep, type Step } from "./step.ts";

export type StepOptions = { connectors: ConnectorOptions; sandbox: Sandbox };

export function prepareStep(
  { requestId, kind, payload, secret }: Pick<SignedExecute, "requestId" | "kind" | "payload" | "secret">,
  { connectors, sandbox }: StepOptions,
): Step {
  const invalid = (why: string) =>
    fixedStep(failed("NODE_EXECUTION_FAILED", `the payload of the step is not valid: ${why}`));
  switch (kind) {
    case "connector.action": {
      const checked = ConnectorActionPayload.safeParse(payload);
      return checked.success
        ? connectorStep(checked.data, { requestId, secret }, connectors)
        : invalid(checked.error.message);
    }
    case "agent.execute": {
      const checked = AgentExecutePayload.safeParse(payload);
      return checked.success ? agentStep(checked.data, sandbox, secret) : invalid(checked.error.message);
    }
    default:
      return fixedStep(
        failed("NODE_EXECUTION_FAILED", `this agent has no steps of the kind ${JSON.stringify(kind)}`),
      );
  }
}
