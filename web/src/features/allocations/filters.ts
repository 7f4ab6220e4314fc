// The filters of the allocations page as they stand in the address bar.

import { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import { Id } from "@holdfast/contracts/fields";

export type AllocationFilters = {
  node_id?: string;
  status?: AllocationStatus;
  /** The reader's own, or those without an active owner. */
  owner?: "me" | "none";
  /** Released ones too; they are left out otherwise. */
  released?: "yes";
  /** The dialog that makes one is open. */
  add?: "yes";
};

export function allocationFiltersFromSearch(search: Record<string, unknown>): AllocationFilters {
  const filters: AllocationFilters = {};
  const node = Id.safeParse(search["node_id"]);
  if (node.success) filters.node_id = node.data;
  const status = AllocationStatus.safeParse(search["status"]);
  if (status.success) filters.status = status.data;
  if (search["owner"] === "me" || search["owner"] === "none") filters.owner = search["owner"];
  if (search["released"] === "yes") filters.released = "yes";
  if (search["add"] === "yes") filters.add = "yes";
  return filters;
}
