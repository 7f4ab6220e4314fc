// What the pages read about workflows. Runs of them have the keys that live.ts looks for.

import { listRecentRuns, MOST_WORKFLOWS_AT_ONCE, type RecentRun } from "@holdfast/contracts/endpoints/recent-runs";
import {
  getWorkflow,
  getWorkflowVersion,
  listWorkflows,
  listWorkflowVersions,
  type Workflow,
} from "@holdfast/contracts/endpoints/workflows";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

const SHOWN_RUNS = 20;

export function useWorkflows() {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useListing<Workflow>({
    key: ["org", org.id, "workflows", "list"],
    page: ({ cursor, signal }) => call(listWorkflows, { query: { cursor, limit: 50 }, signal }),
    refetchInterval,
  });
}

/** For choosing one: the newest 200. */
export function useWorkflowNames() {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "workflows", "names"],
    queryFn: async ({ signal }) => (await call(listWorkflows, { query: { limit: 200 }, signal })).items,
    select: (items) => items.map(({ id, name }) => ({ id, name })).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  });
}

/** By workflow, newest first. */
export function useRecentRuns(workflowIds: readonly string[]) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "runs", "list", { recent: workflowIds }],
    queryFn: async ({ signal }): Promise<Map<string, RecentRun[]>> => {
      const chunks = Array.from({ length: Math.ceil(workflowIds.length / MOST_WORKFLOWS_AT_ONCE) }, (_, index) =>
        workflowIds.slice(index * MOST_WORKFLOWS_AT_ONCE, (index + 1) * MOST_WORKFLOWS_AT_ONCE),
      );
      const answers = await Promise.all(
        chunks.map((ids) =>
          call(listRecentRuns, { query: { workflow_ids: ids.join(","), each: SHOWN_RUNS }, signal }),
        ),
      );
      return new Map(answers.flatMap(({ items }) => items.map(({ workflow_id, runs }) => [workflow_id, runs])));
    },
    enabled: workflowIds.length > 0,
    refetchInterval,
    placeholderData: (before) => before,
  });
}

export function useWorkflow(workflowId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "workflows", workflowId],
    queryFn: ({ signal }) => call(getWorkflow, { params: { workflow_id: workflowId }, signal }),
    refetchInterval,
  });
}

export function useVersions(workflowId: string) {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "workflows", workflowId, "versions"],
    queryFn: async ({ signal }) =>
      (await call(listWorkflowVersions, { params: { workflow_id: workflowId }, query: { limit: 200 }, signal }))
        .items,
  });
}

export function useVersion(workflowId: string, number: number | null) {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "workflow-versions", workflowId, number],
    queryFn: ({ signal }) =>
      call(getWorkflowVersion, { params: { workflow_id: workflowId }, query: { number: number ?? 1 }, signal }),
    enabled: number !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
