// The queries about preflights. The keys are those that live.ts invalidates.

import { listPreflights } from "@holdfast/contracts/endpoints/preflights";
import type { PreflightResult } from "@holdfast/contracts/preflight/report";
import { useQuery } from "@tanstack/react-query";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";

export type PreflightSubject = { node_id: string; allocation_id?: string };

/** The newest of a node, or of an allocation; with `result`, the newest that ended so. */
export function useLastPreflight(of: PreflightSubject, result?: PreflightResult) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { ...of, ...(result ? { result } : {}), limit: 1 };
  return useQuery({
    queryKey: ["org", org.id, "preflights", "list", query],
    queryFn: async ({ signal }) => (await call(listPreflights, { query, signal })).items[0] ?? null,
    refetchInterval,
  });
}
