// Whether a repair is offered: to those who may use the allocation, where there is a user of its own to restore.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import type { Acting } from "../../session.ts";

export function canRepair({ status, access, own_account }: Allocation, may: Acting["may"]): boolean {
  return status === "active" && access !== "view" && !own_account && may("allocations:write");
}
