// Faults of the edge in front of the api.

import type { Edge, EdgeRule } from "../lab/edge.ts";
import type { Lab } from "../lab/lab.ts";
import type { Fault } from "./fault.ts";

export function edgeFollows(lab: Lab, what: string, ...rules: EdgeRule[]): Fault {
  const edge = edgeOf(lab);
  return { what, inject: () => edge.follows(rules), repair: () => edge.relents() };
}

/** As after a restart of the edge: requests that it held do not go on as before. */
export function edgeRestartsWith(lab: Lab, what: string, ...rules: EdgeRule[]): Fault {
  const { inject, repair } = edgeFollows(lab, what, ...rules);
  return {
    what,
    async inject() {
      await inject();
      await edgeOf(lab).cuts();
    },
    repair,
  };
}

/** As a proxy does that inspects TLS: it presents a certificate of its own. */
export function edgePresents(lab: Lab, pem: string): Fault {
  const edge = edgeOf(lab);
  return {
    what: "the edge presents a certificate of another CA",
    inject: () => edge.presents(pem),
    repair: () => edge.presents(undefined),
  };
}

export function edgeOf({ edge }: Lab): Edge {
  if (!edge) throw new Error("this lab has no edge");
  return edge;
}
