// Which nodes a person looks for. The one rule for the table, the picture, the counts and the command line.

import { type FleetFilter, notFineStates } from "@holdfast/contracts/endpoints/fleet";
import type { FleetNode } from "./node.ts";

export function isFiltered(filter: FleetFilter): boolean {
  return Object.values(filter).some((value) => value !== undefined);
}

export function matches(node: FleetNode, filter: FleetFilter): boolean {
  const { state, attention, version, capability, block, search } = filter;
  if (state === "not_fine" && !notFineStates.includes(node.state)) return false;
  if (state !== undefined && state !== "not_fine" && state !== "present" && node.state !== state) return false;
  if (attention !== undefined && !hasCause(node, attention)) return false;
  if (version !== undefined && node.version !== version) return false;
  if (capability !== undefined && !hasOneOf(node, capability.split(","))) return false;
  if (block !== undefined && node.block !== block) return false;
  return search === undefined || isFound(node, search.toLowerCase());
}

/** By what was observed, or by what it was classified as. */
function hasCause({ causes }: FleetNode, code: string): boolean {
  return causes.some(({ spokenAs, reason }) => spokenAs === code || reason === code);
}

function hasOneOf({ report }: FleetNode, capabilities: readonly string[]): boolean {
  return report?.capabilities.some((one) => capabilities.includes(one)) ?? false;
}

function isFound({ id, name, report }: FleetNode, text: string): boolean {
  return (
    name.includes(text) ||
    id.startsWith(text) ||
    (report !== undefined &&
      (report.hostname.toLowerCase().includes(text) || (report.address ?? "").includes(text)))
  );
}
