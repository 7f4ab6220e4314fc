// States of the fleet in words.

import type { FleetState } from "@holdfast/contracts/endpoints/fleet";

export const fleetMarks: Record<FleetState, { word: string; meaning: string }> = {
  silent: { word: "Silent", meaning: "No heartbeat came in time." },
  troubled: { word: "Needs attention", meaning: "Heard, with something to look at." },
  fenced: { word: "Fenced", meaning: "Set aside by an operator: it gets no tasks." },
  draining: { word: "Draining", meaning: "Ends what it runs and takes no new tasks." },
  joining: { word: "Joining", meaning: "Enrolled a moment ago and not heard yet." },
  fine: { word: "Fine", meaning: "Heard, and nothing to look at." },
};

/** After a number. */
export function stateInWords(state: FleetState, number: number): string {
  return state === "troubled" && number !== 1 ? "need attention" : fleetMarks[state].word.toLowerCase();
}

const figures = new Intl.NumberFormat("en");

export function count(number: number): string {
  return figures.format(number);
}

export function nodesInWords(number: number): string {
  return `${count(number)} ${number === 1 ? "node" : "nodes"}`;
}
