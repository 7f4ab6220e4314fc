// The filters of the list of runs, as they stand in the address bar.

import { type RunState, runStates } from "@holdfast/contracts/endpoints/runs";

export type RunFilters = { status?: RunState; workflow_id?: string; id?: string };

const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const isRunId = (text: string) => idForm.test(text);

export function runFiltersFromSearch(search: Record<string, unknown>): RunFilters {
  const status = runStates.find((state) => state === search["status"]);
  const workflow = search["workflow_id"];
  const id = search["id"];
  return {
    ...(status ? { status } : {}),
    ...(typeof workflow === "string" && isRunId(workflow) ? { workflow_id: workflow } : {}),
    ...(typeof id === "string" && id !== "" ? { id } : {}),
  };
}
