// The filters of the list of leases, as they stand in the address bar.

import { type LeaseState, leaseStates } from "@holdfast/contracts/endpoints/leases";

export type LeaseFilters = { status?: LeaseState; host_id?: string };

export function leaseFiltersFromSearch(search: Record<string, unknown>): LeaseFilters {
  const status = leaseStates.find((state) => state === search["status"]);
  const host = search["host_id"];
  return {
    ...(status ? { status } : {}),
    ...(typeof host === "string" && /^[0-9a-f-]{36}$/i.test(host) ? { host_id: host } : {}),
  };
}
