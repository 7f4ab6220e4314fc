// The filters of the nodes page as they stand in the address bar.

import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { NodeStatus } from "@holdfast/contracts/node-protocol";

export type NodeFilters = {
  /** A part of the name. */
  name?: string;
  /** Absent: all but retired ones. */
  status?: NodeStatus;
  /** The dialog that adds a node is open. */
  add?: "yes";
};

export function nodeFiltersFromSearch(search: Record<string, unknown>): NodeFilters {
  const filters: NodeFilters = {};
  const name = search["name"];
  if (typeof name === "string" && name.trim()) filters.name = name.trim().slice(0, 63);
  const status = NodeStatus.safeParse(search["status"]);
  if (status.success) filters.status = status.data;
  if (search["add"] === "yes") filters.add = "yes";
  return filters;
}

export function isShown(node: Pick<Node, "name" | "status">, { name, status }: NodeFilters): boolean {
  if (status ? node.status !== status : node.status === "retired") return false;
  return !name || node.name.includes(name.toLowerCase());
}
