// Counts and states of the fleet as text.

import { type FleetState, notFineStates } from "@holdfast/contracts/endpoints/fleet";
import type { PictureNode } from "@holdfast/contracts/public/fleet-picture";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";

/** After a number: "3 offline". */
export function stateInWords(state: FleetState): string {
  return fleetStateTitles[state].title.toLowerCase();
}

const figures = new Intl.NumberFormat("en");

export function count(number: number): string {
  return figures.format(number);
}

export function nodesInWords(number: number): string {
  return `${count(number)} ${number === 1 ? "node" : "nodes"}`;
}

/** The classified reason of an unhealthy node, or that it is still to come; null: there is none to give. */
export function reasonInWords({ state, reason }: Pick<PictureNode, "state" | "reason">): string | null {
  if (reason !== null) return titleOf(reason);
  return notFineStates.includes(state) ? "Cause being determined" : null;
}
