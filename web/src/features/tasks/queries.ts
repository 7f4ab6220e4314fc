// What the pages read about tasks. The keys are those that live.ts looks for.

import { getTask, listTasks, listTaskTypes, type Task } from "@holdfast/contracts/endpoints/tasks";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { hasEnded } from "./task-marks.ts";

export function useNodeTasks(nodeId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { node_id: nodeId, limit: 10 };
  return useListing<Task>({
    key: ["org", org.id, "tasks", "list", query],
    page: ({ cursor, signal }) => call(listTasks, { query: { ...query, cursor }, signal }),
    refetchInterval,
  });
}

export function useTask(taskId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "tasks", taskId],
    queryFn: ({ signal }) => call(getTask, { params: { task_id: taskId }, signal }),
    // What has ended stays as it is.
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : refetchInterval),
  });
}

export function useTaskTypes() {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "task-types"],
    queryFn: ({ signal }) => call(listTaskTypes, { signal }),
    staleTime: 5 * 60_000,
  });
}
