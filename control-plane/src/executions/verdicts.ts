// What a gateway is answered about a request that was stored before.

import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import type { RequestVerdict } from "@holdfast/contracts/internal/executions";
import type { KnownRow } from "./queries.ts";
import type { NewRequest } from "./transitions/create.ts";

type Asked = Pick<NewRequest, "requestId" | "orgId" | "kind" | "runId" | "stepId">;

/**
 * Its payload is not compared: dispatchers repeat what they know of a request, and that may be less. The parts of its id are,
 * as they may contain colons.
 */
export const isSameRequest = (row: KnownRow, request: Asked) =>
  row.org_id === request.orgId &&
  row.kind === request.kind &&
  row.run_id === request.runId &&
  row.step_id === request.stepId;

/** A request of another organization is answered as one of another kind: nothing of it is disclosed. */
export function verdictOfKnown(request: Asked, row: KnownRow | undefined): RequestVerdict {
  const { requestId: request_id } = request;
  if (!row) {
    return refused(request_id, {
      message: "The organization of the request is not known.",
      nextStep: "Check organizationId: it is the id of an organization on this server.",
    });
  }
  if (!isSameRequest(row, request)) {
    return refused(request_id, {
      message: "Another request has this id, which is made of runId, nodeId and attemptCount.",
      nextStep: "Use run ids that are unique, such as UUIDs, and a higher attemptCount for every attempt.",
    });
  }
  if (row.finished_at) return verdictOfEnded(request_id, row, row.finished_at);
  if (row.agent_id !== null && row.deadline_at) {
    const deadline_at = row.deadline_at.toISOString();
    return { state: "assigned", request_id, agent_id: row.agent_id, deadline_at, offer: null, known: true };
  }
  const wait_until = (row.wait_until ?? new Date()).toISOString();
  return { state: "pending", request_id, wait_until, known: true, not_chosen: [] };
}

function verdictOfEnded(request_id: string, row: KnownRow, endedAt: Date): RequestVerdict {
  if (row.output_erased_at === null)
    return { state: "ended", request_id, result: resultOf(row), ended_at: endedAt.toISOString() };
  return refused(request_id, {
    message: `The request ended as ${row.status} at ${endedAt.toISOString()}, and its result was erased since.`,
    nextStep: "It is not run again. Dispatch the step with a higher attemptCount, if it has to run once more.",
  });
}

export function refused(
  request_id: string,
  { message, nextStep }: { message: string; nextStep: string },
): RequestVerdict {
  return { state: "refused", request_id, message, next_step: nextStep };
}

/** Of one that has ended; whatever is not a success is a failure with its error. */
export function resultOf({
  status,
  output,
  error,
}: Pick<KnownRow, "status" | "output" | "error">): ExecutionResult {
  return {
    status: status === "succeeded" ? "succeeded" : "failed",
    ...(output === null || output === undefined ? {} : { output }),
    ...(error === null ? {} : { error }),
  };
}
