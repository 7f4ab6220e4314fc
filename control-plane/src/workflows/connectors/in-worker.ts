// Actions of connectors that the worker runs itself, and what agents report of those that they ran.

import { connectorFailures } from "@holdfast/contracts/execution/connector-failures";
import { idempotencyKeyOf, runAction } from "@holdfast/workflows/connectors/run-action";
import { networkOf } from "@holdfast/workflows/connectors/send/network";
import type { Node } from "@holdfast/workflows/document/schema";
import type { Allowance } from "../../notify/send/addresses.ts";
import { requestIdFor, type StepOutcome } from "../engine/step.ts";
import type { ClaimedRun } from "../runs/transitions/claim.ts";
import type { AskForSecret } from "../step-secrets/ask.ts";

type Attempt = {
  id: string;
  node: Extract<Node, { type: "connector.action" }>;
  attempt: number;
  input: unknown;
  timeoutMs: number;
};

/** Reaches public addresses, and what the operator of the installation lists. */
export async function runConnector(
  { allowance, askForSecret }: { allowance: Allowance; askForSecret: AskForSecret },
  run: Pick<ClaimedRun, "id" | "org_id">,
  { id, node, attempt, input, timeoutMs }: Attempt,
): Promise<StepOutcome> {
  const { connector, action } = node;
  const signal = AbortSignal.timeout(timeoutMs);
  let secret: string | undefined;
  if (node.secret !== undefined) {
    const answered = await askForSecret({ orgId: run.org_id, runId: run.id, node: id, attempt });
    if (answered === "late") return withoutSecret("secret_late", connectorFailures.secret_late.nextStep);
    if ("refusal" in answered) return withoutSecret("secret_unavailable", answered.refusal);
    secret = answered.value;
  }
  const idempotencyKey = idempotencyKeyOf(requestIdFor(run, id, attempt), input);
  return runAction({ connector, action, input, secret, idempotencyKey, network: networkOf(allowance), signal });
}

function withoutSecret(code: "secret_late" | "secret_unavailable", why: string): StepOutcome {
  const { message, retryable } = connectorFailures[code];
  return { failure: { code, message: `${message} ${why}` }, retryable, outcomeKnown: true };
}

/** Of an agent that knows the catalogue of failures: `{failure: {code, retryAfterMs?, outcomeKnown}}` beside its error. */
export function connectorOutcomeOf(error: string, output: unknown): StepOutcome | undefined {
  const { failure } = (output ?? {}) as {
    failure?: { code?: unknown; retryAfterMs?: unknown; outcomeKnown?: unknown };
  };
  const code = failure?.code;
  if (typeof code !== "string" || !Object.hasOwn(connectorFailures, code)) return undefined;
  const { retryable } = connectorFailures[code as keyof typeof connectorFailures];
  const retryAfterMs = failure?.retryAfterMs;
  return {
    failure: { code, message: error },
    ...{ retryable, outcomeKnown: failure?.outcomeKnown === true },
    ...(typeof retryAfterMs === "number" ? { retryAfterMs } : {}),
  };
}
