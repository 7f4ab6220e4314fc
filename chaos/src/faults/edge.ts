// Faults of the edge in front of the api.

import type { Edge, EdgeRule } from "../lab/edge.ts";
import type { Lab } from "../lab/lab.ts";
import type { Fault } from "./fault.ts";

export function edgeFollows(lab: Lab, what: string, ...rules: EdgeRule[]): Fault {
  const edge = edgeOf(lab);
  return { what, inflict: () => edge.follows(rules), mend: () => edge.relents() };
}

export function edgeOf({ edge }: Lab): Edge {
  if (!edge) throw new Error("this lab has no edge");
  return edge;
}
