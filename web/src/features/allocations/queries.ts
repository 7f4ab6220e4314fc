// The queries about allocations. The keys are those that live.ts invalidates.

import {
  type Allocation,
  getAllocation,
  listAllocationNotifications,
  listAllocations,
} from "@holdfast/contracts/endpoints/allocations";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import type { AllocationFilters } from "./filters.ts";

export function useAllocations(filters: Pick<AllocationFilters, "node_id" | "status" | "owner">) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const { node_id, status, owner } = filters;
  const query = { ...(node_id ? { node_id } : {}), ...(status ? { status } : {}), ...(owner ? { owner } : {}) };
  return useListing<Allocation>({
    key: ["org", org.id, "allocations", "list", query],
    page: ({ cursor, signal }) => call(listAllocations, { query: { ...query, cursor }, signal }),
    refetchInterval,
  });
}

export function useAllocation(allocationId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "allocations", allocationId],
    queryFn: ({ signal }) => call(getAllocation, { params: { allocation_id: allocationId }, signal }),
    refetchInterval,
  });
}

/** The newest ones. */
export function useNotifications(allocationId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const request = { params: { allocation_id: allocationId }, query: { limit: 10 } };
  return useQuery({
    queryKey: ["org", org.id, "allocations", allocationId, "notifications"],
    queryFn: ({ signal }) => call(listAllocationNotifications, { ...request, signal }),
    refetchInterval,
  });
}
