// Executions over HTTP, for people. They are dispatched through the gateway.

import {
  cancelExecution,
  getExecution,
  listExecutions,
  readExecutionOutput,
} from "@holdfast/contracts/endpoints/executions";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import { selectOutput } from "./output.ts";
import { selectExecution, selectExecutions, selectLateResults, toExecution } from "./queries.ts";
import { cancelRequest } from "./transitions/cancel.ts";

export function executionRoutes(api: ApiContext): void {
  const { executions } = api;

  orgRoute(api, listExecutions, async ({ tx, query }) => {
    const { limit, cursor, status, agent_id, request_id } = query;
    const rows = await selectExecutions(tx, {
      ...{ before: pageStart(listExecutions, cursor), limit },
      ...(status === undefined ? {} : { status }),
      ...(agent_id === undefined ? {} : { agentId: agent_id }),
      ...(request_id === undefined ? {} : { requestId: request_id }),
    });
    return toPage(listExecutions, rows, { limit, idOf: (row) => row.id, toItem: toExecution });
  });

  orgRoute(api, getExecution, async ({ tx, params }) => {
    const row = await selectExecution(tx, params.execution_id);
    if (!row) throw new ApiError("not_found");
    const late = await selectLateResults(tx, row.id);
    return {
      ...toExecution(row),
      output: row.output ?? null,
      output_erased_at: row.output_erased_at?.toISOString() ?? null,
      not_chosen: row.agent_id === null ? await executions.notChosen(row) : [],
      late_results: late.map((one) => ({ ...one, at: one.at.toISOString() })),
    };
  });

  orgRoute(api, readExecutionOutput, async ({ tx, params, query }) => {
    const row = await selectExecution(tx, params.execution_id);
    if (!row) throw new ApiError("not_found");
    const chunks = await selectOutput(tx, row.id, query.after);
    return {
      chunks: chunks.map((one) => ({ ...one, at: one.at.toISOString() })),
      ended: row.finished_at !== null,
    };
  });

  orgRoute(api, cancelExecution, async ({ tx, params, touched, afterCommit }) => {
    const { execution_id: id } = params;
    const known = await selectExecution(tx, id);
    if (!known) throw new ApiError("not_found");
    const cancelled = await cancelRequest(tx, id);
    if (!cancelled) throw new ApiError("execution_ended", { details: { status: known.status } });
    touched({ type: "execution", id, name: known.request_id }, { status: cancelled.status });
    afterCommit(() => executions.cancelled(cancelled, known.org_id));
    const row = await selectExecution(tx, id);
    return toExecution(row ?? known);
  });
}
