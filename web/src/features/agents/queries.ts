// What the pages read about agents. The keys are those that live.ts looks for.

import { listAgents } from "@holdfast/contracts/endpoints/agents";
import { useQuery } from "@tanstack/react-query";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

/** All of the organization. `watchful`: read often, while somebody waits for an agent to be paired. */
export function useAgents({ watchful = false }: { watchful?: boolean } = {}) {
  const { org, call } = useActing();
  const usual = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "agents", "list"],
    queryFn: async ({ signal }) => (await call(listAgents, { params: { org_id: org.id }, signal })).agents,
    refetchInterval: watchful ? 2_000 : usual,
  });
}
