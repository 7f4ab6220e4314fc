// What the pages read about leases. The keys are those that live.ts looks for.

import { explainLease, getLease, type Lease, listLeases } from "@holdfast/contracts/endpoints/leases";
import { useQuery } from "@tanstack/react-query";
import { useListing } from "../../listing.ts";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import type { LeaseFilters } from "./filters.ts";
import { hasEnded } from "./lease-marks.ts";

export function useLeases(filters: LeaseFilters) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const query = { ...filters, limit: 25 };
  return useListing<Lease>({
    key: ["org", org.id, "leases", "list", query],
    page: ({ cursor, signal }) => call(listLeases, { query: { ...query, cursor }, signal }),
    refetchInterval,
  });
}

export function useLease(leaseId: string) {
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  return useQuery({
    queryKey: ["org", org.id, "leases", leaseId],
    queryFn: ({ signal }) => call(getLease, { params: { lease_id: leaseId }, signal }),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : refetchInterval),
  });
}

/** It also depends on hosts, which change without the lease. */
export function useExplanation(lease: Pick<Lease, "id" | "status">) {
  const { org, call } = useActing();
  return useQuery({
    queryKey: ["org", org.id, "leases", lease.id, "explain", lease.status],
    queryFn: ({ signal }) => call(explainLease, { params: { lease_id: lease.id }, signal }),
    refetchInterval: lease.status === "requested" ? 5000 : false,
    placeholderData: (before) => before,
  });
}
