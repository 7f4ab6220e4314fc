// What the pages read about runs. The keys are those that live.ts looks for.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { listExecutions } from "@holdfast/contracts/endpoints/executions";
import { getRun, listRunEvents, listRuns, type Run, type RunEventEntry } from "@holdfast/contracts/endpoints/runs";
import { getWorkflowVersion } from "@holdfast/contracts/endpoints/workflows";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { isRunId, type RunFilters } from "./filters.ts";
import { hasEnded } from "./run-marks.ts";

export type RunDetail = AnswerOf<typeof getRun>;

const EVENTS_AT_ONCE = 1000;

/** With an id in the filters: that run alone, whatever else is filtered by. */
export function useRuns({ id, ...filters }: RunFilters, limit = 25) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { ...filters, limit };
  return useListing<Run>({
    key: ["org", org.id, "runs", "list", { ...query, id }],
    page: async ({ cursor, signal }) => {
      if (id === undefined) return call(listRuns, { query: { ...query, cursor }, signal });
      if (!isRunId(id)) return { items: [], next_cursor: null };
      const { input: _, output: __, nodes: ___, ...run } = await call(getRun, { params: { run_id: id }, signal });
      return { items: [run], next_cursor: null };
    },
    refetchInterval,
  });
}

export function useRun(runId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "runs", runId],
    queryFn: ({ signal }) => call(getRun, { params: { run_id: runId }, signal }),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : refetchInterval),
  });
}

/** All of them, oldest first. What is known already is not read again: events never change. */
export function useRunEvents(run: Pick<Run, "id" | "status">) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "runs", run.id, "events"],
    queryFn: async ({ signal, client, queryKey }) => {
      const events = [...(client.getQueryData<RunEventEntry[]>(queryKey) ?? [])];
      for (;;) {
        const after = events.at(-1)?.seq ?? 0;
        const query = { after, limit: EVENTS_AT_ONCE };
        const { items } = await call(listRunEvents, { params: { run_id: run.id }, query, signal });
        events.push(...items);
        if (items.length < EVENTS_AT_ONCE) return events;
      }
    },
    refetchInterval: hasEnded(run) ? false : refetchInterval,
  });
}

/** The document that the run runs. It never changes. */
export function useRunSource({ workflow_id, version }: Pick<Run, "workflow_id" | "version">) {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "workflow-versions", workflow_id, version],
    queryFn: ({ signal }) =>
      call(getWorkflowVersion, { params: { workflow_id }, query: { number: version }, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The execution of a step that was dispatched to an agent. */
export function useExecutionOf(requestId: string | undefined) {
  const { org, call, may } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "executions", "list", { request_id: requestId }],
    queryFn: async ({ signal }) =>
      (await call(listExecutions, { query: { request_id: requestId, limit: 1 }, signal })).items[0] ?? null,
    enabled: requestId !== undefined && may("executions:read"),
    refetchInterval,
  });
}
