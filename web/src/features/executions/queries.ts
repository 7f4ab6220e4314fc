// What the pages read about executions. The keys are those that live.ts looks for.

import {
  type Execution,
  getExecution,
  listExecutions,
  readExecutionOutput,
} from "@holdfast/contracts/endpoints/executions";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { hasEnded } from "./execution-marks.ts";
import type { ExecutionFilters } from "./filters.ts";

export function useExecutions(filters: ExecutionFilters) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { ...filters, limit: 25 };
  return useListing<Execution>({
    key: ["org", org.id, "executions", "list", query],
    page: ({ cursor, signal }) => call(listExecutions, { query: { ...query, cursor }, signal }),
    refetchInterval,
  });
}

export function useExecution(executionId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "executions", executionId],
    queryFn: ({ signal }) => call(getExecution, { params: { execution_id: executionId }, signal }),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : refetchInterval),
  });
}

/** What the step has printed so far. */
export function useExecutionOutput(execution: Execution) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "executions", execution.id, "output", hasEnded(execution)],
    queryFn: ({ signal }) =>
      call(readExecutionOutput, { params: { execution_id: execution.id }, query: { after: 0 }, signal }),
    refetchInterval: ({ state }) => (state.data?.ended ? false : refetchInterval),
    placeholderData: (before) => before,
  });
}
