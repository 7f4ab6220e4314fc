// Carries out the attempts that have begun, and looks for the results of those that were dispatched. What has an effect is in the events
// before it happens; so after a crash it is known which attempts may have had theirs.

import { executionOutcomes as outcomes } from "@holdfast/contracts/execution/outcomes";
import type { Log } from "@holdfast/service/log";
import { idempotencyKeyOf } from "@holdfast/workflows/connectors/run-action";
import type { Node } from "@holdfast/workflows/document/schema";
import { whichAgent } from "@holdfast/workflows/document/which-agent";
import type { Failure, NodeEvent } from "@holdfast/workflows/run/events";
import { afterFailure, effectOf } from "@holdfast/workflows/run/retry";
import type { NodeState } from "@holdfast/workflows/run/state";
import type { Sql } from "../../database/connect.ts";
import type { Allowance } from "../../notify/send/addresses.ts";
import { connectorOutcomeOf, runConnector } from "../connectors/in-worker.ts";
import type { ClaimedRun } from "../runs/transitions/claim.ts";
import type { AskForSecret } from "../step-secrets/ask.ts";
import { failureOf, type Gateway } from "./gateway.ts";
import { requestHttp } from "./http-request.ts";
import { dispatchOf, requestIdFor, runsOnAgent, type StepNode, type StepOutcome, timeoutOf } from "./step.ts";

export type Tools = {
  system: Sql;
  gateway: Gateway;
  askForSecret: AskForSecret;
  allowance: Allowance;
  stepTimeoutMs: number;
  log: Log;
};

type Started = { id: string; node: StepNode; state: Extract<NodeState, { status: "started" }> };

/** `fresh`: it began in this continuation. Otherwise somebody else may have carried it out, and died. */
export async function perform(
  tools: Tools,
  run: ClaimedRun,
  { id, node, state, fresh }: Started & { fresh: boolean },
): Promise<NodeEvent | undefined> {
  const { attempt, input } = state;
  const timeoutMs = timeoutOf(node, tools.stepTimeoutMs);
  if (runsOnAgent(node)) {
    const dispatched = await tools.gateway(dispatchOf({ run, id, node, attempt, input, timeoutMs }));
    if (dispatched === "unreachable") return undefined;
    const requestId = requestIdFor(run, id, attempt);
    if (dispatched === "dispatched") return { type: "node_dispatched", node: id, attempt, requestId };
    return ended(node, { id, attempt }, { failure: dispatched.failure, outcomeKnown: true });
  }
  if (!fresh && effectOf(node) !== "idempotent") {
    const message = "The worker stopped while the step ran. It may have had its effect.";
    return ended(node, { id, attempt }, { failure: { code: "outcome_unknown", message }, outcomeKnown: false });
  }
  return ended(node, { id, attempt }, await inWorker(tools, run, { id, node, state, timeoutMs }));
}

async function inWorker(
  tools: Tools,
  run: ClaimedRun,
  { id, node, state, timeoutMs }: Started & { timeoutMs: number },
): Promise<StepOutcome> {
  const values = (state.input ?? {}) as {
    input?: unknown;
    url?: string;
    headers?: Record<string, string>;
    body?: unknown;
  };
  if (node.type === "http.request") {
    return requestHttp(
      {
        ...{
          method: node.method ?? "GET",
          url: String(values.url),
          headers: values.headers ?? {},
          body: values.body,
        },
        // Of all attempts with the same input: the one before may have had its effect.
        idempotencyKey: idempotencyKeyOf(requestIdFor(run, id, state.attempt), values),
        timeLimitMs: timeoutMs,
      },
      tools.allowance,
    );
  }
  if (node.type === "connector.action") {
    return runConnector(tools, run, { id, node, attempt: state.attempt, input: values.input, timeoutMs });
  }
  const message = `The worker does not run ${node.type}. Set execution.mode to node to run it on an agent.`;
  return { failure: { code: "execution_mode", message }, outcomeKnown: true };
}

export function ended(
  node: Node,
  { id, attempt }: { id: string; attempt: number },
  outcome: StepOutcome,
): NodeEvent {
  if ("output" in outcome) return { type: "node_succeeded", node: id, attempt, output: outcome.output };
  const failed = { ...outcome, failure: explained(node, outcome.failure) };
  return afterFailure(node, { node: id, attempt, ...failed }, { now: new Date(), random: Math.random() });
}

/** Whoever reads it should know which agent it needed, and where to look. */
function explained(node: Node, failure: Failure): Failure {
  if (failure.code !== "NO_AGENT_AVAILABLE") return failure;
  const hint = `It needs ${whichAgent(node)}: \`holdfast agent list\` shows those that are connected, and their tags.`;
  return { ...failure, message: `${failure.message} ${hint}` };
}

type Result = { request_id: string; status: string; error: string | null; output: unknown };

/** After these, the step may have run. */
const unknownOutcomes: ReadonlySet<string> = new Set(["AGENT_DISCONNECTED", "NODE_EXECUTION_TIMEOUT"]);

/** Of the requests that have ended. */
export async function readResults(
  system: Sql,
  run: ClaimedRun,
  requestIds: readonly string[],
): Promise<Map<string, StepOutcome>> {
  if (requestIds.length === 0) return new Map();
  const rows = await system<Result[]>`
    SELECT e.request_id, e.status, e.error, e.output FROM executions e
    WHERE e.request_id = ANY (${[...requestIds]}::text[]) AND e.org_id = ${run.org_id} AND e.finished_at IS NOT NULL`;
  return new Map(rows.map((row) => [row.request_id, outcomeOf(row)]));
}

function outcomeOf({ error, output }: Result): StepOutcome {
  if (error === null) return { output };
  const ofConnector = connectorOutcomeOf(error, output);
  if (ofConnector) return ofConnector;
  const known = error in outcomes ? failureOf(error as keyof typeof outcomes) : undefined;
  const failure: Failure = known ?? { code: "NODE_EXECUTION_FAILED", message: error };
  return { failure, outcomeKnown: !unknownOutcomes.has(error) };
}
