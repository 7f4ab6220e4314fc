// States of the fleet and reasons, in words.

import { type DiagnosticReason, diagnosticReasons } from "@holdfast/contracts/diagnostics";
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

/** Short, for a heading: `disk_full` is Disk full. */
export function reasonWords(code: string): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What it means; undefined for what only a newer agent knows. */
export function reasonMeaning(code: string): string | undefined {
  if (code === "heartbeat_stale") return "Nothing is heard of it.";
  if (code === "heartbeat_in_future") {
    return "Its last heartbeat is recorded in the future, because a clock of the control plane was wrong.";
  }
  if (code === "never_heard") return "It was enrolled and has never been heard from.";
  return Object.hasOwn(diagnosticReasons, code) ? diagnosticReasons[code as DiagnosticReason].message : undefined;
}

const figures = new Intl.NumberFormat("en");

export function count(number: number): string {
  return figures.format(number);
}

export function nodesInWords(number: number): string {
  return `${count(number)} ${number === 1 ? "node" : "nodes"}`;
}
