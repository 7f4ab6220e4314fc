// Counts and states of the fleet as text.

import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
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
