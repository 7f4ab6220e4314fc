// Reads an allocation for a caller. Refuses callers without the required access.

import type { Allocation, AllocationAccess } from "@holdfast/contracts/endpoints/allocations";
import { ApiError } from "@holdfast/contracts/errors";
import type { Tx } from "../database/connect.ts";
import { accessTo, type Caller, requireAccess } from "./access.ts";
import { grantOf, lockAllocation, type SeenRow, selectAllocation, toAllocation } from "./queries.ts";

export async function readAllocation(
  tx: Tx,
  caller: Caller,
  id: string,
  needed: AllocationAccess,
): Promise<SeenRow> {
  return requireRow(await selectAllocation(tx, id, caller), caller, needed);
}

/** Locked until the transaction ends: the reconciler leaves it alone meanwhile. */
export async function lockForChange(tx: Tx, caller: Caller, id: string, needed: AllocationAccess = "manage") {
  return requireRow(await lockAllocation(tx, id, caller), caller, needed);
}

export function presentAllocation(caller: Caller, row: SeenRow): Allocation {
  const access = accessOf(caller, row);
  if (access === "none") throw new Error(`allocation ${row.id} was read for somebody without access`);
  return toAllocation(row, access);
}

export function accessOf(caller: Caller, row: SeenRow): AllocationAccess | "none" {
  return accessTo(caller, { ...row, grant: grantOf(row) }, row.read_at);
}

/** Throws when the allocation does not exist, or the caller has less than the access needed. */
export function requireRow<Row extends SeenRow>(
  row: Row | undefined,
  caller: Caller,
  needed: AllocationAccess,
): Row {
  if (!row) throw new ApiError("not_found");
  requireAccess(accessOf(caller, row), needed);
  return row;
}
