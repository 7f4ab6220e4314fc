// The filters of the list of executions, as they stand in the address bar.

import { type ExecutionState, executionStates } from "@holdfast/contracts/endpoints/executions";

export type ExecutionFilters = { status?: ExecutionState; agent_id?: string };

export function executionFiltersFromSearch(search: Record<string, unknown>): ExecutionFilters {
  const status = executionStates.find((state) => state === search["status"]);
  const agent = search["agent_id"];
  return {
    ...(status ? { status } : {}),
    ...(typeof agent === "string" && /^[0-9a-f-]{36}$/i.test(agent) ? { agent_id: agent } : {}),
  };
}
