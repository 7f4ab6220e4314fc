// The filters of the nodes page, stored in the address bar: a link shows another person the same view.

import { FleetFilter } from "@holdfast/contracts/endpoints/fleet";
import type { NodeStateFilter } from "@holdfast/contracts/endpoints/nodes";
import { type Grouping, groupings } from "../fleet/grouping.ts";

/** A state of the fleet, or retired. */
type ShownState = Exclude<FleetFilter["state"], "present" | undefined> | "retired";

export type NodeFilters = Omit<FleetFilter, "state"> & {
  /** Absent: all but retired ones. */
  state?: ShownState | undefined;
  /** What the picture is grouped by; absent: by state. */
  group?: Grouping | undefined;
  /** The dialog that adds a node is open. */
  add?: "yes" | undefined;
};

const texts = ["attention", "version", "capability", "block", "search"] as const;

export function nodeFiltersFromSearch(search: Record<string, unknown>): NodeFilters {
  const filters: NodeFilters = {};
  for (const name of texts) {
    const text = FleetFilter.shape[name].safeParse(search[name]);
    if (text.success && text.data) filters[name] = text.data;
  }
  const state = FleetFilter.shape.state.safeParse(search["state"]);
  if (search["state"] === "retired") filters.state = "retired";
  else if (state.success && state.data && state.data !== "present") filters.state = state.data;
  const group = groupings.find((one) => one === search["group"]);
  if (group && group !== "state") filters.group = group;
  if (search["add"] === "yes") filters.add = "yes";
  return filters;
}

/** The filter for the picture and the counts; empty: the whole fleet. */
export function fleetFilter({ group, add, state, ...rest }: NodeFilters): FleetFilter {
  return state === undefined || state === "retired" ? rest : { ...rest, state };
}

/** The filter for the table. Retired nodes can be searched by name and id only. */
export function listFilter(filters: NodeFilters): Omit<FleetFilter, "state"> & { state?: NodeStateFilter } {
  if (filters.state !== "retired") return { state: "present", ...fleetFilter(filters) };
  return { state: "retired", ...(filters.search ? { search: filters.search } : {}) };
}

export function isNarrowed(filters: NodeFilters): boolean {
  return filters.state === "retired" || Object.values(fleetFilter(filters)).some((value) => value !== undefined);
}
