// Whether repair is offered: to people with access to use the allocation, unless it is the agent's own account.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import type { Acting } from "../../session.ts";

export function canRepair({ status, access, own_account }: Allocation, may: Acting["may"]): boolean {
  return status === "active" && access !== "view" && !own_account && may("allocations:write");
}
