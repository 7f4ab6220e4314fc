// What the pages read about Jenkins controllers. The keys are those that live.ts looks for.

import { getJenkinsController, listJenkinsControllers } from "@holdfast/contracts/endpoints/jenkins";
import { useQuery } from "@tanstack/react-query";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

export function useControllers() {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "jenkins", "list"],
    queryFn: async ({ signal }) => (await call(listJenkinsControllers, { signal })).items,
    refetchInterval,
  });
}

export function useController(controllerId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "jenkins", controllerId],
    queryFn: ({ signal }) => call(getJenkinsController, { params: { controller_id: controllerId }, signal }),
    refetchInterval,
  });
}
